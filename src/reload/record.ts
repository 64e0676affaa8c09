import { createHmac, randomUUID } from 'node:crypto'
import type { Config } from '../config/schema.ts'
import type { Audit } from '../core/audit.ts'
import { osUser } from '../core/os-user.ts'
import type { Difference } from './difference.ts'

/** Writes down what happens to the configuration (F11): which one a gateway starts and stops with, and each reload. */
export interface ConfigurationRecord {
  started(config: Config): void
  applied(config: Config, difference: Difference): void
  refused(error: string): void
  stopped(config: Config): Promise<void>
}

/**
 * `secret` keys the hash of a configuration: it holds passwords, and a plain hash would let anybody who reads the log
 * try them out.
 */
export function recordConfiguration(
  audit: Audit,
  secret: string,
  redact: (text: string) => string,
): ConfigurationRecord {
  const hashOf = (config: Config) => createHmac('sha256', secret).update(JSON.stringify(config, sorted)).digest('hex')

  const write = (operation: string, given: Record<string, unknown>, error?: string): Promise<void> | undefined => {
    const subject = {
      call: randomUUID(),
      agent: '(none)',
      principal: `os:${osUser()}`,
      operation,
      write: false,
    }
    const how =
      error === undefined
        ? ({ decision: 'ALLOW', is_error: false } as const)
        : ({ decision: 'ERROR', reason: 'configuration_invalid', detail: redact(error), is_error: true } as const)
    try {
      audit.begin({ ...subject, arguments: given })?.catch(() => {})
      return audit.end({ ...subject, ...how, latency_ms: 0 })?.catch(() => {})
    } catch {
      // Whoever writes the records tells the log that it cannot; a configuration is in force all the same.
      return undefined
    }
  }

  return {
    started: (config) => void write('gateway_start', { configuration: hashOf(config) }),
    applied: (config, { servers, sections, atNextStart }) =>
      void write('reload', { configuration: hashOf(config), sections, servers, atNextStart }),
    refused: (error) => void write('reload', {}, error),
    async stopped(config) {
      await write('gateway_stop', { configuration: hashOf(config) })
    },
  }
}

/** The order of keys changes with reloads and means nothing: equal configurations have equal hashes. */
const sorted = (_: string, value: unknown): unknown =>
  typeof value !== 'object' || value === null || Array.isArray(value)
    ? value
    : Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
