import { ConfigError } from '../config/problems.ts'
import { CannotListen, type ErrorCode, ServerError, ToolwayError } from '../core/errors.ts'
import { type Output, UsageError } from './kit.ts'
import { oneLine, printable } from './table.ts'

interface Failure {
  /** Absent where nobody has given the failure a name. */
  readonly code?: string | number
  readonly message: string
  readonly hint?: string | undefined
  /** More for programs. */
  readonly more?: object
}

const hints = (command: string): Partial<Record<ErrorCode, string>> => ({
  TOOL_NOT_FOUND: `\`${command} tools\` lists what there is.`,
  SERVER_NOT_FOUND: `\`${command} servers\` lists what there is.`,
  SERVER_UNAVAILABLE: `\`${command} servers\` shows how each server is; --log debug shows what this one said.`,
  INVALID_ARGUMENTS: `\`${command} tools show NAME\` shows what a tool takes.`,
  DENIED_BY_POLICY: `\`${command} why AGENT TOOL\` shows what was considered.`,
  NO_FALLBACK_CONFIGURED: 'Here it is named with --agent.',
  FALLBACK_AGENT_NOT_IN_RULES: 'Another one is named with --agent.',
  QUARANTINED: `\`${command} pins show TOOL\` shows what has changed; \`${command} pins approve TOOL\` lets it through.`,
  TIMEOUT: 'Give it more time with --timeout.',
})

function describe(thrown: unknown, command: string): Failure {
  if (thrown instanceof ToolwayError) {
    return { code: thrown.code, message: thrown.message, hint: hints(command)[thrown.code], more: thrown.data }
  }
  if (thrown instanceof ServerError) {
    const { code, message, data } = thrown.error.value
    return { code, message, ...(data !== undefined && { more: { data } }) }
  }
  if (thrown instanceof ConfigError) {
    return { code: 'CONFIG', message: thrown.message, more: { problems: thrown.problems } }
  }
  if (thrown instanceof CannotListen) return { code: 'CANNOT_LISTEN', message: thrown.message }
  if (thrown instanceof UsageError) return { code: 'USAGE', message: thrown.message, hint: thrown.hint }
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  return { message, hint: 'Run it again with --log debug to see where this comes from.' }
}

/** Tells what went wrong: in a few lines on stderr, or as JSON on stdout. */
export function report(thrown: unknown, output: Output, surroundings: ReportContext): void {
  const { code, message, hint, more } = describe(thrown, surroundings.command)
  if (output.json) {
    output.value({ error: { code: code ?? 'INTERNAL', message, ...more, ...(hint !== undefined && { hint }) } })
  } else if (thrown instanceof ConfigError) {
    output.note(printable(thrown.format(surroundings.cwd)))
  } else {
    output.note(`${output.paintNote('red', code === undefined ? 'error:' : `error ${code}:`)} ${oneLine(message)}`)
    if (hint !== undefined) output.note(output.paintNote('dim', `hint: ${hint}`))
  }
  if (surroundings.debug && thrown instanceof Error) output.note(printable(stackOf(thrown)))
}

interface ReportContext {
  /** How the user spells the command line. */
  readonly command: string
  readonly cwd: string
  /** Whether the user wants to see where it comes from. */
  readonly debug: boolean
}

const stackOf = (error: Error): string =>
  [error.stack, ...(error.cause instanceof Error ? [`caused by ${stackOf(error.cause)}`] : [])].join('\n')
