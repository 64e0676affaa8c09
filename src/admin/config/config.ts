import { redacted } from '../../audit/redact/conceal.ts'
import type { Redactor } from '../../audit/redact/redactor.ts'
import { secretsInArgument, secretsInUrl, type TextSpan } from '../../audit/redact/secrets.ts'
import type { Config } from '../../config/schema.ts'
import { secretKindAt } from '../../config/schema-lookup.ts'
import type { Path } from '../../config/tree.ts'
import type { Caller } from '../../core/call.ts'
import { isRecord } from '../../lib/is-record.ts'
import { commandLine } from '../../lib/message-text.ts'
import { replaceSpans } from '../../lib/replace-spans.ts'
import type { ReloadAttempt } from '../../runtime/reload.ts'
import { type AdminContext, auditOperation } from '../context.ts'
import type { ConfigView, ReloadEvent } from '../contract.ts'
import { viewReloads } from '../overview/overview.ts'
import { configView, reloadEvent } from '../overview/schema.ts'
import { adminRoute, type Route } from '../router.ts'

export type ConfigService = ReturnType<typeof createConfigAdmin>

export function createConfigAdmin(context: AdminContext) {
  const { current, reloads, audit } = context

  const shown = (attempt: ReloadAttempt): ReloadEvent => reloadEventOf(attempt, current().redactor)

  return {
    config(): ConfigView {
      const { loaded, warnings, redactor } = current()
      return {
        files: loaded.files.map(({ path, dialect }) => ({ path, dialect })),
        config: redactConfig(loaded.config, redactor),
        warnings: warnings.map(redactor.text),
        reload: viewReloads(context, true),
        history: reloads.attempts.map(shown),
      }
    },
    lastReload: (): ReloadEvent | undefined => reloads.attempts[0] && shown(reloads.attempts[0]),
    reload: (caller: Caller): Promise<ReloadEvent> =>
      auditOperation(audit, caller, { operation: 'reload_config' }, () => reloadAll(context)),
    onReload: (listener: (event: ReloadEvent) => void): Disposable =>
      reloads.onAttempt((attempt) => listener(shown(attempt))),
  }
}

/** Reloads all processes. Returns this process's outcome. */
export async function reloadAll({ current, cluster, reloads, clock }: AdminContext): Promise<ReloadEvent> {
  const attempts: ReloadAttempt[] = []
  using _ = reloads.onAttempt((attempt) => attempts.push(attempt))
  await cluster.reload()
  const attempt = attempts.find(({ ok }) => !ok) ?? attempts.find(({ changes }) => changes.length > 0) ?? attempts[0]
  return reloadEventOf(attempt ?? { at: clock.now(), ok: true, error: null, changes: [] }, current().redactor)
}

/** A reload attempt without secrets: error messages may quote the file. */
const reloadEventOf = ({ at, ok, error, changes }: ReloadAttempt, { text }: Pick<Redactor, 'text'>): ReloadEvent => ({
  at,
  ok,
  error: error === null ? null : text(error),
  changes: changes.map(text),
})

/** Special values of `token`, which are not secret. */
const tokenKeywords: ReadonlySet<unknown> = new Set(['generated', 'none'])

/** Makes a configuration safe to display: hides settings marked as secret, and passes other text to the redactor. */
export function redactConfig(config: Config, redactor: Redactor): Record<string, unknown> {
  const show = (value: unknown, path: Path): unknown => {
    const kind = secretKindAt(path)
    if ((kind === 'variables' || kind === 'headers') && isRecord(value)) return redactMembers(value, () => redacted)
    if (typeof value === 'string') {
      if (kind === true || kind === 'digest') return tokenKeywords.has(value) ? value : redacted
      return redactor.text(
        kind === 'address' || kind === 'publicAddress' ? redactUrl(value, kind === 'publicAddress') : value,
      )
    }
    if (Array.isArray(value)) {
      const items =
        kind === 'words'
          ? value.map((word, index) => withoutSpans(word, secretsInArgument(value, index, { strict: true })))
          : value
      return items.map((item, index) => show(item, [...path, index]))
    }
    // Redact the arguments of a sink's tool in the same way as the arguments of any call.
    if (kind === 'payload' && isRecord(value)) return redactor.value(value)
    return isRecord(value) ? redactMembers(value, (part, key) => show(part, [...path, key])) : value
  }
  return redactMembers(config, (part, key) => show(part, [key]))
}

export const serverTarget = ({ url, serverUrl, httpUrl, command, args }: Readonly<Record<string, unknown>>): string => {
  const address = url ?? serverUrl ?? httpUrl
  if (typeof address === 'string') return address
  const words = [command, ...(Array.isArray(args) ? args : [])].filter((word) => typeof word === 'string')
  return commandLine(words)
}

const withoutSpans = (text: string, spans: readonly TextSpan[]): string => replaceSpans(text, spans, () => redacted)

/** Hides the user, password, query and fragment of a URL, and random segments of its path unless the path is public. */
function redactUrl(text: string, isPublic: boolean): string {
  if (!URL.canParse(text)) return redacted
  const { protocol, host, pathname, username, password, search, hash } = new URL(
    isPublic ? text : withoutSpans(text, secretsInUrl(text)),
  )
  const user = username + password === '' ? '' : `${redacted}@`
  return `${protocol}//${user}${host}${pathname}${search === '' ? '' : `?${redacted}`}${hash === '' ? '' : `#${redacted}`}`
}

const redactMembers = (record: object, show: (value: unknown, key: string) => unknown): Record<string, unknown> =>
  Object.fromEntries(Object.entries(record).map(([key, value]) => [key, show(value, key)]))

export const configRoutes = (admin: ConfigService): readonly Route[] => [
  adminRoute('GET', 'config', 'The effective configuration without secrets, and the reload history', {
    answer: configView,
    run: () => admin.config(),
  }),
  adminRoute('POST', 'config/reload', 'Reloads the configuration; an invalid one is not applied', {
    answer: reloadEvent,
    run: ({ caller }) => admin.reload(caller),
  }),
]
