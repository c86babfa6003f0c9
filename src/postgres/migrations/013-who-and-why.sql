-- Records which operator created a sale or changed an order, and the reason.

ALTER TABLE stock_movements DROP CONSTRAINT stock_movements_action_check,
  ADD CONSTRAINT stock_movements_action_check
    CHECK (action IN ('create', 'pause', 'resume', 'close', 'top-up', 'withdraw', 'window', 'resize', 'require-token'));

-- Changes that operators made to orders; changes by buyers have no row. Each kind of change happens at most once to an order,
-- so the order's id and the change are the key, and no other index is needed.
CREATE TABLE order_changes (
  order_id bigint NOT NULL,
  changed_at timestamptz NOT NULL DEFAULT now(),
  change text COLLATE "C" NOT NULL CHECK (change IN ('pay', 'cancel', 'redeem', 'refund')),
  actor text NOT NULL,
  reason text NOT NULL,
  PRIMARY KEY (order_id, change)
);

-- stockade_change_order for an operator, which may change every buyer's order. It writes a row if this call makes the change,
-- and none if the change was made before or is refused. It locks the order's row before it reads it, so that no other
-- transaction changes the order in between.
CREATE FUNCTION stockade_change_order_by(
  changed bigint, kind text, payment text, by_actor text, because text, OUT verdict text, OUT stands orders
) RETURNS SETOF record LANGUAGE plpgsql AS $$
DECLARE
  before orders;
  decided record;
BEGIN
  SELECT * INTO before FROM orders WHERE order_id = changed FOR UPDATE;
  FOR decided IN SELECT * FROM stockade_change_order(changed, kind, payment, NULL) LOOP
    verdict := decided.verdict;
    stands := decided.stands;
    IF verdict = 'done' AND stands IS DISTINCT FROM before THEN
      INSERT INTO order_changes (order_id, change, actor, reason) VALUES (changed, kind, by_actor, because);
    END IF;
    RETURN NEXT;
  END LOOP;
END
$$;

-- stockade_settle_late_payment for an operator. If this call makes the decision, it writes a row for the late order, and one
-- for the order that the payment pays instead.
CREATE FUNCTION stockade_settle_late_payment_by(
  late bigint, taken bigint, payment text, by_actor text, because text, OUT verdict text, OUT stands orders
) LANGUAGE plpgsql AS $$
DECLARE
  was_decided boolean;
  decided record;
BEGIN
  PERFORM 1 FROM orders WHERE order_id IN (late, taken) ORDER BY order_id FOR UPDATE;
  SELECT retaken_by IS NOT NULL OR refund_due_at IS NOT NULL INTO was_decided FROM orders WHERE order_id = late;
  SELECT * INTO decided FROM stockade_settle_late_payment(late, taken, payment);
  verdict := decided.verdict;
  stands := decided.stands;
  IF NOT was_decided AND verdict IN ('retaken', 'refund_due') THEN
    INSERT INTO order_changes (order_id, change, actor, reason)
      SELECT id, 'pay', by_actor, because FROM unnest(ARRAY[late, stands.order_id]) AS id GROUP BY id;
  END IF;
END
$$;
