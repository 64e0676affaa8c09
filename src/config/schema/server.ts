import * as z from 'zod'
import { exposure } from './policy.ts'
import { address, duration, flag, limit, names, numeric, size, text, textLike } from './values.ts'

/** The host without the brackets that IPv6 addresses have in URLs. */
export const withoutBrackets = (host: string): string => host.replace(/^\[(.*:.*)\]$/, '$1')

/** Paths of Toolway's other endpoints. */
const reserved =
  /^\/(?:livez|readyz|metrics|oauth\/callback|v1\/chat\/completions)\/?$|^\/(?:admin\/api|assets|v1\/models|\.well-known)(?:\/|$)/

export const serverSection = z.strictObject({
  host: text('a host name or an IP address')
    .transform(withoutBrackets)
    .prefault('127.0.0.1')
    .describe('Address to listen on.'),
  port: numeric({ max: 65_535 }).prefault(4322).describe('Port to listen on; 0: any free port.'),
  path: textLike(/^\/[\w./~-]*$/, 'a path that starts with /')
    .refine((path) => !reserved.test(path), { error: 'a path that Toolway does not use itself, such as /mcp' })
    .default('/mcp')
    .describe('Path of the MCP endpoint; also served with /stream appended.'),
  allowedHosts: names('a host, with its port if it is not the default')
    .default([])
    .describe('Accepted values of the Host header, in addition to host:port and localhost.'),
  allowedOrigins: names('an origin such as https://app.example.com')
    .default([])
    .describe("Accepted values of the Origin header, in addition to the gateway's own."),
  // Accept only http://, because replicas call each other at this address, and the gateway does not serve TLS.
  advertise: address('http')
    .optional()
    .describe('URL where other replicas reach this one, such as http://10.0.0.7:4322. Default: its host and port.'),
  allowUnauthenticated: flag()
    .prefault(false)
    .describe('Allows auth.token none with a host that is not loopback: other machines need no credential.'),
  maxBody: size().prefault('4MiB').describe('Maximum size of a request body.'),
  maxInFlight: size()
    .prefault('128MiB')
    .describe('Maximum total size of request bodies in flight; further requests get 429.'),
  maxInFlightPerCaller: size()
    .prefault('32MiB')
    .describe('Maximum total size per caller, or per address for callers without a credential.'),
  maxValues: numeric({ min: 1 })
    .prefault(100_000)
    .describe('Maximum number of values in one message (object members and array elements); larger messages get 413.'),
  maxConnections: numeric({ min: 1 }).prefault(10_000).describe('Maximum open connections.'),
  maxConnectionsPerAddress: numeric({ min: 1 })
    .prefault(2_000)
    .describe(
      'Maximum open connections per address (IPv6: per /64); raise it if all clients connect through one proxy.',
    ),
  shutdownGrace: duration().prefault('10s').describe('How long calls in flight may take to finish on shutdown.'),
})

export const defaultsSection = z.strictObject({
  agent: text('the name of an agent')
    .optional()
    .describe(
      'Agent for callers that do not specify one; the environment variable TOOLWAY_DEFAULT_AGENT overrides it.',
    ),
  denyOnMissingAgent: flag().prefault(true).describe('Whether callers without an agent are rejected.'),
  expose: exposure.default('both').describe('How agents see tools: direct, meta, both or code.'),
  timeout: limit().prefault('30s').describe('Time limit for a call. Progress restarts it, up to maxTimeout in total.'),
  maxTimeout: limit()
    .prefault('10m')
    .describe('Total time limit for a call whose server reports progress; a longer timeout takes precedence.'),
  debug: flag().prefault(false).describe('Offers get_gateway_status to all agents.'),
})
