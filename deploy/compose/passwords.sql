-- The passwords of both roles, from the files that make-secrets.mjs has made. psql runs this once, in a new database.
\set owner `cat /run/stockade/owner-password`
\set app `cat /run/stockade/app-password`
ALTER ROLE stockade_owner PASSWORD :'owner';
ALTER ROLE stockade_app PASSWORD :'app';
