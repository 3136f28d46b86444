/* The package entry: what a service imports. */

export { Postern } from './app/app.js';
export type { CloseOptions } from './app/closing.js';
export type { Listening, ListenOptions, MonitorOptions } from './app/address.js';
export { defineErrorCodes, FrameworkErrorCodes, type ErrorCode, type ErrorCodes } from './base/error-codes.js';
export {
  ApiError,
  BadRequest,
  Conflict,
  Forbidden,
  HttpError,
  NotFound,
  ServiceUnavailable,
  TooManyRequests,
  Unauthorized,
} from './base/errors.js';
export type { ApiErrorOptions, HttpErrorOptions, RetryOptions } from './base/errors.js';
export type { Context, Handler, HandlerResult, Middleware, State } from './http/context.js';
export { InvalidRequest, type RequestFinding } from './http/request.js';
export { connect, type ConnectMiddleware } from './pipeline/connect.js';
export { redirect, Reply, reply, type RedirectStatus, type ReplyInit } from './http/reply.js';
export type { RequestTraceMessage } from './http/request-tracing.js';
export type { Logger, LogLevel, LogMethod, SafeLogger, SafeLogMethod } from './base/log.js';
export type {
  Query,
  QueryValue,
  RequestHeaders,
  ServiceBody,
  ServiceBodyOptions,
  ServiceCallOptions,
  ServiceClient,
  ServiceFetchOptions,
  ServiceRequestOptions,
  ServiceResponse,
  ServiceStandIn,
  ServiceStream,
} from './client/service-client.js';
export { ServiceError, type ServiceErrorOptions } from './client/service-error.js';
export type { Settings, SettingsOptions } from './client/settings.js';
export type { CallTraceMessage } from './mesh/call-tracing.js';
export type { TraceSpan } from './propagation/trace-context.js';
export { Registry } from './metrics/registry.js';
export type { PingDocument, PingEntry } from './monitor/ping-document.js';
export type { Health, HealthCheck, HealthCheckOptions, HealthDocument, HealthStatus } from './monitor/health.js';
export type { PosternOptions } from './app/options.js';
export type {
  AnySchema,
  InputOf,
  OutputOf,
  SchemaIssue,
  SchemaResult,
  StandardSchemaV1,
} from './payload/standard-schema.js';
export { defineEndpoint } from './endpoint/endpoint-definition.js';
export type { CallInput, CallResult, EndpointDefinition } from './endpoint/endpoint-definition.js';
export type { HandlerInput, MaybeResponse, MaybeSchema, Schemas, SchemasByStatus } from './endpoint/schemas.js';
export { path } from './endpoint/path-parameter.js';
export { publicFacing, type PublicFlag, type PublicHandler, type PublicOptions } from './endpoint/public-facing.js';
export type { GroupOptions, RouteGroup } from './app/route-group.js';
export type { View } from './app/view.js';
export type { Scope, ScopeOptions } from './http/scope.js';
export { endpoint } from './app/endpoint.js';
export type {
  CarryingHandler,
  EndpointFlag,
  EndpointHandler,
  ResultOf,
  RouteOptions,
  ServedSettings,
} from './app/endpoint.js';
export type { Carrier, Deprecation, ErrorType, Priority } from './endpoint/route-options.js';
export type { RouteSettings, SharedOptions } from './endpoint/route-options.js';
export type { ParamsOf } from './endpoint/pattern.js';
export { Router } from './routing/router.js';
export type { Found, MatchedRoute, Params, RouteInfo, RoutesPublic } from './routing/router.js';
