/** The package entry: what a service imports. */

export { Postern } from './app/app.js';
export type { CloseOptions, Listening, ListenOptions } from './app/app.js';
export {
  ApiError,
  BadRequest,
  Conflict,
  defineErrorCodes,
  Forbidden,
  FrameworkErrorCodes,
  HttpError,
  NotFound,
  ServiceUnavailable,
  TooManyRequests,
  Unauthorized,
} from './errors.js';
export type { ApiErrorOptions, ErrorCode, ErrorCodes, HttpErrorOptions, RetryOptions } from './errors.js';
export type { Context, Handler, HandlerResult, Middleware } from './http/context.js';
export { Reply, reply } from './http/reply.js';
export type { ReplyInit } from './http/reply.js';
export type { RequestTraceMessage } from './pipeline/tracing.js';
export type { Logger, LogMethod } from './log.js';
export { ServiceError } from './mesh/service.js';
export type { Query, QueryValue, ServiceBodyOptions, ServiceClient, ServiceRequestOptions, ServiceResponse } from './mesh/service.js';
export type { Settings, SettingsOptions } from './mesh/settings.js';
export { Registry } from './metrics/registry.js';
export type { PingDocument, PingEntry } from './monitor/ping.js';
export type { Health, HealthCheck, HealthCheckOptions, HealthDocument, HealthStatus } from './monitor/health.js';
export type { PosternOptions } from './app/options.js';
export { publicFacing } from './routing/public-facing.js';
export type { PublicFlag, PublicHandler, PublicOptions } from './routing/public-facing.js';
export type { RouteGroup, View } from './app/route-group.js';
export type { ParamsOf } from './routing/pattern.js';
export { Router } from './routing/router.js';
export type { Found, Params, RouteInfo, RoutesPublic } from './routing/router.js';
