import { ConfigError } from '../config/problems.ts'
import { CannotListen, type ErrorCode, ServerError, ToolwayError } from '../core/errors.ts'
import { type Output, UsageError } from './kit.ts'
import { oneLine, printable } from './table.ts'

interface Failure {
  /** Absent for unexpected errors. */
  readonly code?: string | number
  readonly message: string
  readonly hint?: string | undefined
  /** Further members of the JSON error. */
  readonly more?: object
}

const hints = (command: string): Partial<Record<ErrorCode, string>> => ({
  TOOL_NOT_FOUND: `\`${command} tools\` lists the tools.`,
  SERVER_NOT_FOUND: `\`${command} servers\` lists the servers.`,
  SERVER_UNAVAILABLE: `\`${command} servers\` shows the state of each server; --log debug shows what this one wrote.`,
  INVALID_ARGUMENTS: `\`${command} tools show NAME\` shows the arguments of a tool.`,
  DENIED_BY_POLICY: `\`${command} why AGENT TOOL\` shows which rule decided.`,
  NO_FALLBACK_CONFIGURED: 'Name the agent with --agent.',
  FALLBACK_AGENT_NOT_IN_RULES: 'Name another agent with --agent.',
  QUARANTINED: `\`${command} pins show TOOL\` shows what changed; \`${command} pins approve TOOL\` approves it.`,
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
  return { message, hint: 'Run it again with --log debug to see the stack trace.' }
}

/** Prints an error: a few lines on stderr, or JSON on stdout. */
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
  /** Whether to print the stack. */
  readonly debug: boolean
}

const stackOf = (error: Error): string =>
  [error.stack, ...(error.cause instanceof Error ? [`caused by ${stackOf(error.cause)}`] : [])].join('\n')
