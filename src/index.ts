/// <reference types="node" preserve="true" />
/* The package entry: what a service imports. */

export { Postern } from './app/app.js';
export type { CloseOptions } from './app/closing.js';
export type {
  Address,
  DescriptorOptions,
  Listening,
  ListeningOnPath,
  ListenOptions,
  Monitored,
  MonitorOptions,
  PathAddress,
  PathOptions,
} from './app/address.js';
export { defineErrorCodes, type ErrorCode, type ErrorCodes } from './base/error-codes.js';
export {
  ApiError,
  BadRequest,
  Conflict,
  Forbidden,
  FrameworkErrorCodes,
  HttpError,
  InvalidRequest,
  NotFound,
  ServiceUnavailable,
  TooManyRequests,
  Unauthorized,
} from './base/errors.js';
export type { ApiErrorOptions, Finding, HttpErrorOptions, RequestFinding, RetryOptions } from './base/errors.js';
export type { AnswerOptions, Context, Handler, HandlerResult, Middleware, State } from './answer/context.js';
export type { RequestTraceMessage } from './answer/context.js';
export { connect, type ConnectMiddleware } from './answer/connect.js';
export { redirect, Reply, reply, type HeadersLike, type RedirectStatus, type ReplyInit } from './answer/reply.js';
export { events, type EventItem, type EventsOptions } from './answer/events.js';
export type { Sendable } from './answer/sendable.js';
export type { Job, JobFunction, JobOptions, JobTraceMessage } from './job/job.js';
export type { Logger, LogLevel, LogMethod, LogOptions, SafeLogger, SafeLogMethod } from './base/log.js';
export type {
  Query,
  QueryValue,
  RequestHeaders,
  ServiceBody,
  ServiceBodyOptions,
  ServiceCallOptions,
  ServiceFetchOptions,
  ServiceRequestOptions,
  ServiceResponse,
  ServiceStandIn,
  ServiceStream,
} from './mesh/call-options.js';
export type { CallArguments, ServiceClient } from './mesh/service-client.js';
export { ServiceError, type ServiceErrorOptions } from './mesh/service-error.js';
export type { ConnectionOptions, MeshOptions, Settings, SettingsOptions } from './mesh/settings.js';
export type { CallTraceMessage } from './mesh/call-tracing.js';
export type { Caller } from './propagation/caller.js';
export type { TraceSpan } from './propagation/trace-context.js';
export { Registry } from './metrics/registry.js';
export type * from './metrics/public.js';
export { collectDefaultMetrics, type DefaultMetricsOptions } from './process/sampler.js';
export type { PingDocument, PingEntry } from './monitor/ping-document.js';
export type { Health, HealthCheck, HealthCheckOptions, HealthDocument, HealthStatus } from './monitor/health.js';
export type { PosternOptions } from './app/options.js';
export type { DiagnosticsOptions, MonitoringOptions } from './monitor/monitoring-options.js';
export type { LoadSheddingOptions, OverloadOptions } from './overload/overload.js';
export type { DocumentOptions, OpenApiExtras } from './endpoint/document-settings.js';
export type { ByteStream } from './payload/bytes.js';
export type { ErrorBody } from './payload/error-body.js';
export type {
  AnySchema,
  InputOf,
  JsonSchemaConverter,
  JsonSchemaOptions,
  OutputOf,
  SchemaIssue,
  SchemaResult,
  StandardProps,
  StandardSchemaV1,
} from './payload/standard-schema.js';
export { defineEndpoint } from './endpoint/endpoint-definition.js';
export type { CallInput, CallResult, EndpointDefinition, TypedResponse } from './endpoint/endpoint-definition.js';
export type {
  HandlerInput,
  MaybeResponse,
  MaybeSchema,
  OneSchema,
  SchemaOrNone,
  SchemasByStatus,
} from './endpoint/schemas.js';
export { path } from './endpoint/path-parameter.js';
export { publicFacing } from './endpoint/public-facing.js';
export type { AnyFunction, PublicFlag, PublicHandler, PublicOptions } from './endpoint/public-facing.js';
export type { GroupArguments, RouteGroup, SendingView, Verb } from './app/route-group.js';
export type { View, ViewMethod } from './app/view.js';
export type { Scope, ScopeOptions } from './wire/scope.js';
export type { ConnectionLimits } from './wire/server.js';
export { endpoint } from './app/endpoint.js';
export type {
  CarryingHandler,
  Declared,
  EndpointFlag,
  EndpointHandler,
  EndpointMethod,
  ResultOf,
  RouteOptions,
  Sends,
} from './app/endpoint.js';
export type { Carrier, DeclaredOptions, Deprecation, ErrorType, GroupOptions } from './endpoint/route-options.js';
export type { Priority } from './endpoint/route-options.js';
export type { ParamsOf } from './endpoint/pattern.js';
export { Router } from './routing/router.js';
export type { Found, MatchedRoute, Params, Route, RouteInfo, RoutesPublic } from './routing/router.js';
