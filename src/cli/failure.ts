import { FileProblem } from '../config/edit/file.ts'
import { ConfigError } from '../config/problems.ts'
import { CannotListen, type ErrorCode, ServerError, ToolwayError } from '../core/errors.ts'
import { CommandError, type Output, type Shell } from './kit.ts'
import { oneLine, printable } from './table.ts'

interface Failure {
  /** Absent for unexpected errors. */
  readonly code?: string | number
  readonly message: string
  readonly hint?: string | undefined
  /** Additional members of the JSON error. */
  readonly more?: object
}

const hints: Partial<Record<ErrorCode | 'NO_GATEWAY', string>> = {
  TOOL_NOT_FOUND: '`toolway tools` lists the tools.',
  SERVER_NOT_FOUND: '`toolway servers` lists the servers.',
  SERVER_UNAVAILABLE: "`toolway servers` shows each server's state, `toolway doctor` the output of those that fail.",
  INVALID_ARGUMENTS: "`toolway tools show NAME` shows a tool's arguments.",
  DENIED_BY_POLICY: '`toolway why AGENT TOOL` shows which rule decided.',
  NO_FALLBACK_CONFIGURED: 'Specify the agent with --agent.',
  FALLBACK_AGENT_NOT_IN_RULES: 'Specify another agent with --agent.',
  QUARANTINED: '`toolway pins show TOOL` shows what changed; `toolway pins approve TOOL` approves it.',
  AUDIT_UNAVAILABLE: '`toolway doctor` checks the folder of the audit log (audit.path).',
  TIMEOUT: 'Increase the time limit with --timeout.',
  NO_GATEWAY: '`toolway serve` starts a gateway; --host and --port name another one.',
}

function describe(thrown: unknown): Failure {
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  if (thrown instanceof ToolwayError) {
    // The error may be about a model server or a database, which `servers` does not show.
    const isElsewhere = thrown.code === 'SERVER_UNAVAILABLE' && thrown.details.server === undefined
    // Approving a definition does not help if its schema is invalid; the message says what does.
    const isUnusable = thrown.code === 'QUARANTINED' && thrown.details.rule === 'inputSchema'
    const hint = isElsewhere || isUnusable ? undefined : hints[thrown.code]
    return { code: thrown.code, message, hint, more: thrown.data }
  }
  if (thrown instanceof ServerError) {
    const { code, message } = thrown.error.value
    return { code, message, more: { data: thrown.error.exact.data } }
  }
  if (thrown instanceof ConfigError) return { code: 'CONFIG', message, more: { problems: thrown.problems } }
  if (thrown instanceof CannotListen) return { code: 'CANNOT_LISTEN', message }
  if (thrown instanceof FileProblem) return { code: 'USAGE', message, hint: thrown.hint }
  if (thrown instanceof CommandError) {
    const { code, hint } = thrown
    return { code, message, hint: code === 'NO_GATEWAY' ? hints[code] : hint }
  }
  return { message, hint: fileHint(thrown) ?? 'Run it again with --log debug to see the stack trace.' }
}

/** What to do about a file or folder that cannot be written. */
function fileHint(thrown: unknown): string | undefined {
  const error = thrown instanceof Error && thrown.cause instanceof Error ? thrown.cause : thrown
  const { code = '', path, syscall = 'spawn' } = error as NodeJS.ErrnoException
  if (!(error instanceof Error) || path === undefined || syscall.startsWith('spawn')) return undefined
  if (code === 'ENOSPC' || code === 'EDQUOT') return 'Free some space there, or set stores.path to another folder.'
  if (!['EACCES', 'EPERM', 'EROFS', 'ENOTDIR'].includes(code) && syscall !== 'mkdir') return undefined
  return '`toolway doctor` checks the state folders; stores.path sets another one.'
}

/** Prints an error: a few lines on stderr, or JSON on stdout. */
export function report(
  thrown: unknown,
  output: Output,
  { command, cwd, debug: showsStack }: Pick<Shell, 'command' | 'cwd'> & { readonly debug: boolean },
): void {
  const failure = describe(thrown)
  const { code, more } = failure
  // Messages name commands as `toolway …`: most of them do not know how it is called here.
  const callable = (text: string) => text.replaceAll('`toolway ', `\`${command} `)
  const message = callable(failure.message)
  const hint = failure.hint && callable(failure.hint)
  if (output.json) {
    output.value({ error: { code: code ?? 'INTERNAL', message, ...more, hint } })
  } else if (thrown instanceof ConfigError) {
    output.note(printable(thrown.format(cwd)))
  } else {
    const label = code === undefined ? 'error:' : `error ${oneLine(String(code))}:`
    output.note(`${output.paintNote('red', label)} ${oneLine(message)}`)
    if (hint !== undefined) output.note(output.paintNote('dim', `hint: ${hint}`))
  }
  if (showsStack && thrown instanceof Error) output.note(printable(stackOf(thrown)))
}

const stackOf = (error: Error): string =>
  [error.stack, ...(error.cause instanceof Error ? [`caused by ${stackOf(error.cause)}`] : [])].join('\n')
