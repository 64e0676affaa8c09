import * as z from 'zod'
import { approvalsRoutes } from './approvals/approvals.ts'
import { auditRoutes } from './audit/audit.ts'
import { callsRoutes } from './calls/calls.ts'
import { chatRoutes, type DashboardChat } from './chat/chat.ts'
import { configRoutes } from './config/config.ts'
import { configEditRoutes } from './config/config-edit.ts'
import { endpointsRoutes } from './endpoints/endpoints.ts'
import { inboxRoutes } from './inbox/inbox-service.ts'
import { keysRoutes } from './keys/keys.ts'
import type { LiveEvents } from './live-events.ts'
import { overviewRoutes } from './overview/overview.ts'
import { schemaRegistry } from './overview/schema.ts'
import { pinsRoutes } from './pins/pins.ts'
import { type PlaygroundStreams, playgroundRoutes } from './playground/playground.ts'
import { policyRoutes } from './policy/policy.ts'
import { publicRoute, type Route, responseSent, userRoute } from './router.ts'
import { serversRoutes } from './servers/servers.ts'
import type { AdminService } from './service.ts'
import { type Credentials, sessionRoutes } from './session/credentials.ts'
import { skillsRoutes } from './skills/skills.ts'
import { toolsRoutes } from './tools/tools.ts'

export interface RouteParts {
  readonly admin: AdminService
  readonly credentials: Credentials
  readonly chat: DashboardChat
  readonly events: LiveEvents
  readonly streams: PlaygroundStreams
  readonly version: string
}

/** All admin API routes. The OpenAPI document describes this list. */
export function adminRoutes({ admin, version, ...parts }: RouteParts): readonly Route[] {
  let document: object | undefined
  const routes: readonly Route[] = [
    ...sessionRoutes(parts.credentials),
    userRoute(
      'GET',
      'events',
      'Server-sent events: overview, calls, servers, approvals, reload, inbox; starts with one of each',
      {
        stream: true,
        run({ user, caller, response }, { watch }) {
          parts.events.open(caller, response)
          watch(user, response)
          return responseSent
        },
      },
    ),
    publicRoute('GET', 'openapi.json', 'This document', {
      answer: z.record(z.string(), z.unknown()),
      run() {
        document ??= openApi(routes, version)
        return document
      },
    }),
    ...overviewRoutes(admin),
    ...endpointsRoutes(admin),
    ...inboxRoutes(admin),
    ...serversRoutes(admin),
    ...toolsRoutes(admin),
    ...pinsRoutes(admin),
    ...skillsRoutes(admin),
    ...playgroundRoutes(admin, parts.streams),
    ...callsRoutes(admin),
    ...approvalsRoutes(admin),
    ...auditRoutes(admin),
    ...policyRoutes(admin),
    ...keysRoutes(admin),
    ...configRoutes(admin),
    ...configEditRoutes(admin),
    ...chatRoutes(parts.chat),
  ]
  return routes
}

const openApiBase = '/admin/api'
const jsonMediaType = 'application/json'

const accessSentences = {
  anyone: '',
  guest: 'Users who are not admins see only what their agent may see.',
  admin: 'Admins only.',
} as const

function openApi(routes: readonly Route[], version: string): object {
  const paths: Record<string, Record<string, object>> = {}
  for (const route of routes) {
    const path = `${openApiBase}/${route.path}`
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route) }
  }
  const { schemas } = z.toJSONSchema(schemaRegistry, { uri: (id) => `#/components/schemas/${id}` })
  return {
    openapi: '3.1.0',
    info: {
      title: 'Toolway admin API',
      version,
      description: "The dashboard's API. Times are in milliseconds since the epoch, durations in milliseconds.",
    },
    paths,
    components: {
      schemas: Object.fromEntries(Object.entries(schemas).map(([id, schema]) => [id, withoutStandalone(schema)])),
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'The token, an API key, or a JSON Web Token.' },
        cookie: {
          type: 'apiKey',
          in: 'cookie',
          name: 'toolway_admin_PORT',
          description: 'Set by POST session. Requests other than GET also need the header `Toolway-Admin: 1`.',
        },
      },
    },
    security: [{ bearer: [] }, { cookie: [] }],
  }
}

function operation(route: Route): object {
  const { method, path, summary, access, answer, body, stream, mediaTypes = ['text/event-stream'] } = route
  const target = /\{(\w+)\}/.exec(path)?.[1]
  const parameters = [
    ...(target === undefined ? [] : [{ name: target, in: 'path', required: true, schema: { type: 'string' } }]),
    ...(route.query ? queryParameters(route.query) : []),
  ]
  const streamed = stream && Object.fromEntries(mediaTypes.map((type) => [type, {}]))
  const content = streamed ?? (answer && { [jsonMediaType]: { schema: schemaOf(answer) } })
  return {
    operationId: operationId(method, path),
    summary,
    ...(accessSentences[access] !== '' && { description: accessSentences[access] }),
    ...(access === 'anyone' && { security: [] }),
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: { required: true, content: { [jsonMediaType]: { schema: schemaOf(body, 'input') } } } }),
    responses: {
      ...(content ? { 200: { description: 'OK', content } } : { 204: { description: 'No content' } }),
      default: {
        description: 'Error',
        content: { [jsonMediaType]: { schema: { $ref: '#/components/schemas/AdminError' } } },
      },
    },
  }
}

/** A route's operation ID: `GET servers/{name}` becomes `getServersName`. */
const operationId = (method: string, path: string): string =>
  method.toLowerCase() + path.replace(/(?:^|\W+)(\w)/g, (_, letter: string) => letter.toUpperCase()).replace(/\W/g, '')

function queryParameters(query: z.ZodObject): object[] {
  const { properties = {}, required = [] } = z.toJSONSchema(query, { io: 'input' })
  const output = z.toJSONSchema(query, { io: 'output' }).properties ?? {}
  return Object.keys(properties).map((name) => {
    // Query values are strings, so document the type after coercion.
    const { description, ...schema } = output[name] as { description?: string }
    return { name, in: 'query', required: required.includes(name), description, schema }
  })
}

/** Returns a reference to a named schema; other schemas are inlined. */
function schemaOf(schema: z.ZodType, io: 'input' | 'output' = 'output'): object {
  const id = schemaRegistry.get(schema)?.id
  if (id !== undefined) return { $ref: `#/components/schemas/${id}` }
  if (schema instanceof z.ZodArray) return { type: 'array', items: schemaOf(schema.element as z.ZodType, io) }
  return withoutStandalone(z.toJSONSchema(schema, { io }))
}

/** Removes the keywords that only make sense in stand-alone schemas. */
const withoutStandalone = ({ $schema: _, $id: __, ...schema }: Record<string, unknown>): object => schema
