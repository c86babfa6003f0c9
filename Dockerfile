# A node, `stockade sync`, `stockade migrate` and all other commands: docker build --tag stockade .
#
# uWebSockets.js has binaries for Node 22 on Linux with glibc, none for Alpine and none for Node 24. Pin the image by its
# digest for a shop: --build-arg NODE_IMAGE=node:22-bookworm-slim@sha256:…
ARG NODE_IMAGE=node:22-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# No package may run a program here: `prepare` would build before there is a source, and nothing else needs a script.
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY scripts scripts
COPY src src
# `stockade demo --queue` shows this page.
COPY examples/shop-page/page examples/shop-page/page
# The build needs the development packages, the program does not. Of uWebSockets.js one binary of 26 is for this system.
RUN npm run build \
  && npm prune --omit=dev --ignore-scripts \
  && find node_modules/uWebSockets.js/dist/bin -name '*.node' \
    ! -name "$(node -p '`uws_${process.platform}_${process.arch}_${process.versions.modules}.node`')" -delete \
  && find dist -name '*.map' -delete

FROM ${NODE_IMAGE}
# Without BUYER_AUTH=jwt or TRUST_BUYER_HEADER=1 a node refuses to start at this HOST. There is no secret in this image:
# give REDIS_URL, DATABASE_URL and keys to the container when it starts.
ENV NODE_ENV=production HOST=0.0.0.0 DATA_DIR=/var/lib/stockade/data PATH=/app/bin:$PATH
WORKDIR /app
COPY package.json LICENSE ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
# The ports describe themselves with these.
COPY docs/openapi.json docs/openapi-ops.json docs/
COPY deploy deploy
# The only folder that a node writes to, and only without DATABASE_URL or OPS_TOKEN: a volume, if the root is read-only.
RUN mkdir -p bin /var/lib/stockade \
  && ln -s ../dist/cli/main.js bin/stockade \
  && chown 1000:1000 /var/lib/stockade
# The user `node`, by its number: Kubernetes can then see that it is not root.
USER 1000:1000
EXPOSE 8080
STOPSIGNAL SIGTERM
# `fetch` of Node itself: the image needs no other program for it. /readyz would restart nodes when Redis is away.
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.OPS_PORT || 9090}/healthz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# Node is PID 1 and has its own handlers for SIGTERM and SIGINT.
ENTRYPOINT ["node", "/app/dist/cli/main.js"]
CMD ["serve"]
