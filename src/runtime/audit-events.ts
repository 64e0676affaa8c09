import { createHmac, randomUUID } from 'node:crypto'
import type { Config } from '../config/schema.ts'
import type { Audit, AuditBegin } from '../core/audit.ts'
import { osUser } from '../core/home.ts'
import { type AuditedEnding, endOfError } from '../core/outcome.ts'
import { canonical } from '../json/canonical-json.ts'
import type { ConfigDifference } from './config-difference.ts'

/** Records starts, stops and reloads in the audit log, each with a hash of the configuration (F11). */
export class ConfigAudit {
  readonly #audit: Audit
  readonly #secret: string
  readonly #redact: (text: string) => string

  /** Hashes are keyed with `secret`, because passwords in the configuration could be guessed from a plain hash. */
  constructor(audit: Audit, secret: string, redact: (text: string) => string) {
    this.#audit = audit
    this.#secret = secret
    this.#redact = redact
  }

  started(config: Config): void {
    void this.#write('gateway_start', { configuration: this.#hashOf(config) })
  }

  applied(config: Config, { servers, sections, atNextStart }: ConfigDifference): void {
    void this.#write('reload', { configuration: this.#hashOf(config), sections, servers, atNextStart })
  }

  refused(error: string): void {
    void this.#write('reload', {}, error)
  }

  async stopped(config: Config): Promise<void> {
    await this.#write('gateway_stop', { configuration: this.#hashOf(config) })
  }

  #hashOf(config: Config): string {
    return createHmac('sha256', this.#secret).update(canonical(config)).digest('hex')
  }

  #write(operation: string, args: Record<string, unknown>, error?: string): Promise<void> | undefined {
    const principal = `os:${osUser()}`
    const subject = { call: randomUUID(), agent: '(none)', principal, operation, write: false }
    const outcome =
      error === undefined
        ? ({ decision: 'ALLOW', is_error: false } as const)
        : ({ decision: 'ERROR', reason: 'configuration_invalid', detail: this.#redact(error), is_error: true } as const)
    try {
      this.#audit.begin({ ...subject, arguments: args })?.catch(() => {})
      return this.#audit.end({ ...subject, ...outcome, latency_ms: 0 })?.catch(() => {})
    } catch {
      // Ignore audit log failures: the audit log reports them itself, and they must not stop a reload.
      return undefined
    }
  }
}

interface AuditedAction extends Omit<AuditBegin, 'call' | 'write'> {
  readonly rule: string
}

/** Runs an action that is not a call, and audits it like a call (F11). Rejects if the action cannot be recorded. */
export async function auditAction<T>(
  audit: Audit,
  { rule, arguments: args, ...action }: AuditedAction,
  work: () => Promise<T>,
): Promise<T> {
  const subject = { call: randomUUID(), ...action, write: true }
  const start = performance.now()
  const end = (ending: AuditedEnding) =>
    audit.end({ ...subject, ...ending, latency_ms: Math.round((performance.now() - start) * 100) / 100 })
  await audit.begin({ ...subject, arguments: args })
  try {
    const result = await work()
    await end({ decision: 'ALLOW', rule, is_error: false })
    return result
  } catch (thrown) {
    await end(endOfError(thrown).ending)
    throw thrown
  }
}
