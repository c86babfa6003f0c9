-- Two roles for one database of Stockade, so that a node that is taken over can't change, drop or empty a table:
--
--   stockade_owner  owns the tables; only `stockade migrate` uses it
--   stockade_app    what `stockade serve` and `stockade sync` need, and no more
--
-- Run once in that database, as an administrator; running it again changes nothing:
--
--   psql --dbname=shop --set=ON_ERROR_STOP=1 --file=deploy/postgres-roles.sql
--
-- Then give both a password (`\password stockade_owner` in psql; until then no password works). At the beginning, and after
-- each upgrade, create the tables and grant the app's rights on them:
--
--   DATABASE_URL=postgres://stockade_owner:…@db/shop stockade migrate --grant-to stockade_app
--
-- The rights on tables are listed in src/postgres/app-role.ts.

DO $$
DECLARE
  role text;
BEGIN
  FOREACH role IN ARRAY ARRAY['stockade_owner', 'stockade_app'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
      EXECUTE format('CREATE ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS', role);
    END IF;
  END LOOP;
  -- By default everybody may connect, and create temporary tables.
  EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
  EXECUTE format('GRANT CONNECT ON DATABASE %I TO stockade_owner, stockade_app', current_database());
END
$$;

-- Before Postgres 15, everybody may create tables in the schema public.
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE, CREATE ON SCHEMA public TO stockade_owner;
GRANT USAGE ON SCHEMA public TO stockade_app;
