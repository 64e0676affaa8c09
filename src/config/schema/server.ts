import * as z from 'zod'
import { address, duration, flag, names, numeric, size, text, textLike } from './values.ts'

/** The HTTP door. */
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
  // Replicas speak plain HTTP to one another, as this door does.
  advertise: address('http')
    .optional()
    .describe('Where other replicas reach this one, such as http://10.0.0.7:4322; its host and port otherwise.'),
  allowUnauthenticated: flag()
    .prefault(false)
    .describe(
      'Lets other machines in without a credential: auth.token none with a host that is not loopback is refused otherwise.',
    ),
  maxBody: size().prefault('4MiB').describe('Largest request body.'),
  shutdownGrace: duration().prefault('10s').describe('How long calls in flight may take to finish on shutdown.'),
})
