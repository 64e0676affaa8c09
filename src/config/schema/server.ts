import * as z from 'zod'
import { exposure } from './policy.ts'
import { address, duration, flag, limit, names, numeric, size, text, textLike } from './values.ts'

export const serverSection = z.strictObject({
  host: text('a host name or an IP address').default('127.0.0.1').describe('Address to listen on.'),
  port: numeric({ max: 65_535 }).prefault(4322).describe('Port to listen on; 0 takes any free one.'),
  path: textLike(/^\/[\w./~-]*$/, 'a path that starts with /')
    .default('/mcp')
    .describe('Path of the MCP endpoint; the same path with /stream answers too.'),
  allowedHosts: names('a host, with its port if it is not the usual one')
    .default([])
    .describe('Values of the Host header that are accepted beside host:port and localhost.'),
  allowedOrigins: names('an origin such as https://app.example.com')
    .default([])
    .describe('Values of the Origin header that are accepted beside our own.'),
  // Replicas use plain HTTP between each other, because this endpoint has no TLS.
  advertise: address('http')
    .optional()
    .describe('Where other replicas reach this one, such as http://10.0.0.7:4322; its host and port otherwise.'),
  allowUnauthenticated: flag()
    .prefault(false)
    .describe(
      'Lets other machines in without a credential: auth.token none with a host that is not loopback is refused otherwise.',
    ),
  maxBody: size().prefault('4MiB').describe('Largest request body.'),
  maxInFlight: size()
    .prefault('128MiB')
    .describe('Bytes that the bodies of all requests in flight may take; more are refused with 429.'),
  maxInFlightPerCaller: size()
    .prefault('32MiB')
    .describe('The same for one caller, or for one address where the caller has no credential.'),
  maxValues: numeric({ min: 1 })
    .prefault(100_000)
    .describe('Values in one message: members of objects and elements of arrays; more are refused with 413.'),
  maxConnections: numeric({ min: 1 }).prefault(10_000).describe('Open connections.'),
  maxConnectionsPerAddress: numeric({ min: 1 })
    .prefault(2_000)
    .describe('Open connections of one address (IPv6: of a /64); raise it where all clients come through one proxy.'),
  shutdownGrace: duration().prefault('10s').describe('How long calls in flight may take to finish on shutdown.'),
})

export const defaultsSection = z.strictObject({
  agent: text('the name of an agent')
    .optional()
    .describe('Agent of a caller that names none; the variable TOOLWAY_DEFAULT_AGENT overrides it.'),
  denyOnMissingAgent: flag().prefault(true).describe('Whether a caller without an agent is refused.'),
  expose: exposure.default('both').describe('How agents see tools: direct, meta, both or code.'),
  timeout: limit()
    .prefault('30s')
    .describe('Time limit of a call. Progress of the server starts it again, up to maxTimeout in all.'),
  maxTimeout: limit()
    .prefault('10m')
    .describe('Time limit of a call whose server reports progress; a longer timeout counts instead of it.'),
  debug: flag().prefault(false).describe('Shows get_gateway_status to everyone.'),
})
