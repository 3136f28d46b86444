/* Entry point `postern/gateway`: the public routes of a table as the configuration of a gateway (SPEC 2.7, 4.3). */

export { toCaddy } from './gateway/caddy.js';
export { toGatewayApi, type GatewayApiListenerOptions, type GatewayApiOptions } from './gateway/gateway-api.js';
export { toHAProxy } from './gateway/haproxy.js';
export { toKong } from './gateway/kong.js';
export { toNginx } from './gateway/nginx.js';
export {
  GatewayError,
  type ExporterArguments,
  type GatewayOptions,
  type GatewayService,
  type ListenerOptions,
  type RouteTable,
} from './gateway/exporter-options.js';
export type { RouteInfo } from './routing/router.js';
