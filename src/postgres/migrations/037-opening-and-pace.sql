-- As in 030, but if the clock was set back, the pace allows what a second allows, and counts anew from the next offer on. Before, it allowed
-- nothing until the clock had caught up. The clocks of two processors may differ a little: that is no clock that was set back.
CREATE OR REPLACE FUNCTION stockade_pace(line queues) RETURNS double precision LANGUAGE sql AS $$
  SELECT least(greatest(1, line.per_minute / 60.0)::double precision, CASE
    WHEN line.paced_at > clock_timestamp() + interval '1 second' THEN 'infinity'
    ELSE line.pace_left
      + greatest(0, extract(epoch FROM clock_timestamp() - line.paced_at))::double precision * line.per_minute / 60
  END)
$$;
