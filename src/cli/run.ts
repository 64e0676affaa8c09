import { type Command, CommanderError } from 'commander'
import type { Clock } from '../core/clock.ts'
import { ToolwayError } from '../core/errors.ts'
import { nearMisses } from '../lib/similar-text.ts'
import { createOutput, type ExitCode, exit, exitCodeOf, type Shell, UsageError } from './kit.ts'
import { createProgram } from './program.ts'

/** The words that select a command, such as `keys create`, and the one after them that should, as in `tools nope`. */
function selectedCommand(program: Command) {
  const names: string[] = []
  let { commands } = program
  for (const word of program.args) {
    if (word === 'help') continue
    const found = commands.find((command) => command.name() === word)
    if (!found) return { names, unknown: commands.length === 0 || word.startsWith('-') ? undefined : word, commands }
    names.push(word)
    commands = found.commands
  }
  return { names, unknown: undefined, commands }
}

function usageError({ code, message }: CommanderError, command: string, program: Command): UsageError {
  const { names, unknown, commands } = selectedCommand(program)
  // A group with a default command reports an unknown command as an argument too many of its default command.
  if (unknown !== undefined && (code === 'commander.help' || code === 'commander.excessArguments')) {
    const known = commands.map((one) => one.name())
    const near = nearMisses(unknown, known)
    const hint = near.length > 0 ? `Did you mean ${near.join(' or ')}?` : `The commands are ${known.join(', ')}.`
    return new UsageError(`unknown command '${unknown}'`, hint)
  }
  if (code === 'commander.help')
    return new UsageError('no command was given', `\`${command} --help\` lists the commands.`)
  const [problem = '', ...hints] = message.replace(/^error: /, '').split('\n')
  const otherwise =
    code === 'commander.unknownOption' && names[0] === 'add'
      ? "Put the server's own options after --."
      : `See \`${[command, ...names].join(' ')} --help\`.`
  return new UsageError(problem, hints.join(' ').replace(/^\((.*)\)$/, '$1') || otherwise)
}

/** Runs one command line. Never rejects: errors are printed and become an exit code. */
export async function run(words: readonly string[], shell: Shell): Promise<ExitCode> {
  let code: ExitCode = exit.ok
  const program = createProgram(shell, (answer) => {
    code = answer
  })
  try {
    await program.parseAsync(words, { from: 'user' })
    return code
  } catch (thrown) {
    if (thrown instanceof CommanderError && thrown.exitCode === 0) return exit.ok
    const { log, ...opts } = program.opts<{ json?: boolean; log?: string }>()
    const options = words.slice(0, words.includes('--') ? words.indexOf('--') : undefined)
    // Commander stops at an invalid option and does not read those after it.
    const json = opts.json ?? (thrown instanceof CommanderError && options.includes('--json'))
    const isHelp = thrown instanceof CommanderError && thrown.code === 'commander.help'
    if (isHelp && !json && selectedCommand(program).unknown === undefined) return exit.usage
    const failure = thrown instanceof CommanderError ? usageError(thrown, shell.command, program) : thrown
    // With `stdio`, print no JSON: stdout carries the protocol.
    const isStdio = program.args.length > 0 ? program.args[0] === 'stdio' : options.includes('stdio')
    const output = createOutput(shell, json && !isStdio)
    const expected = shell.interrupted.aborted && failure instanceof ToolwayError && failure.code === 'CANCELLED'
    if (!expected || json) {
      const { report } = await import('./failure.ts')
      report(failure, output, { command: shell.command, cwd: shell.cwd, debug: log === 'debug' || log === 'trace' })
    }
    return exitCodeOf(failure)
  }
}

/** A second signal within this time is ignored: the terminal and npm both send Ctrl+C, so one press arrives twice. */
const echoMs = 400

/** The first signal stops the command gracefully; the second calls `leave`, which ends the process. */
export function createInterrupt({ clock, leave }: { clock: Clock; leave: () => void }): {
  readonly signal: AbortSignal
  stop(): void
  receive(): void
} {
  const controller = new AbortController()
  let first: number | undefined
  const stop = () => controller.abort(new ToolwayError('CANCELLED', 'Interrupted.'))
  return {
    /** Aborted by the first SIGINT or SIGTERM: commands then stop their work and clean up. */
    signal: controller.signal,
    /** Aborts `signal`, as the first SIGINT or SIGTERM does. */
    stop,
    receive() {
      if (first !== undefined && clock.monotonic() - first > echoMs) return leave()
      first ??= clock.monotonic()
      stop()
    },
  }
}
