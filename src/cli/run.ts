import { type Command, CommanderError } from 'commander'
import type { Clock } from '../core/clock.ts'
import { ToolwayError } from '../core/errors.ts'
import { nearMisses } from '../lib/similar-text.ts'
import { columnsOf, createOutput, type ExitCode, exit, exitCodeOf, type Shell, UsageError } from './kit.ts'
import { createProgram } from './program.ts'

/** Makes commander and all its subcommands use the given shell instead of the process. */
function bind(command: Command, shell: Shell): void {
  const { paint } = createOutput(shell)
  command
    .exitOverride()
    .configureHelp({ showGlobalOptions: true, styleTitle: (title) => paint('bold', title) })
    .configureOutput({
      writeOut: (text) => shell.stdout.write(text),
      writeErr: (text) => shell.stderr.write(text),
      outputError: () => {},
      getOutHelpWidth: () => columnsOf(shell.stdout, 100),
      getErrHelpWidth: () => columnsOf(shell.stderr, 100),
    })
  for (const subcommand of command.commands) bind(subcommand, shell)
}

/** The word that should be the name of a command but is not, as in `help nope` and `tools nope`. */
function unknownCommand(program: Command): { readonly word: string; readonly names: readonly string[] } | undefined {
  let group = program
  for (const word of program.args) {
    if (word === 'help') continue
    const found = group.commands.find((command) => command.name() === word)
    if (!found) {
      const names = group.commands.map((command) => command.name())
      return names.length === 0 || word.startsWith('-') ? undefined : { word, names }
    }
    group = found
  }
  return undefined
}

/** The names of the command that the words select, such as `keys create`. */
function groupNames(program: Command): readonly string[] {
  const names: string[] = []
  let group: Command | undefined = program
  for (const word of program.args) {
    group = group.commands.find((command) => command.name() === word)
    if (!group) break
    names.push(word)
  }
  return names
}

function usageError({ code, message }: CommanderError, command: string, program: Command): UsageError {
  const verb = program.args[0]
  // A group with a default command reports an unknown command as an argument too many of its default command.
  const unknown =
    code === 'commander.help' || code === 'commander.excessArguments' ? unknownCommand(program) : undefined
  if (unknown) {
    const near = nearMisses(unknown.word, unknown.names)
    const hint =
      near.length > 0 ? `Did you mean ${near.join(' or ')}?` : `The commands are ${unknown.names.join(', ')}.`
    return new UsageError(`unknown command '${unknown.word}'`, hint)
  }
  if (code === 'commander.help')
    return new UsageError('no command was given', `\`${command} --help\` lists the commands.`)
  const [problem = '', ...hints] = message.replace(/^error: /, '').split('\n')
  const otherwise =
    code === 'commander.unknownOption' && verb === 'add'
      ? "Put the server's own options after --."
      : `See \`${[command, ...groupNames(program)].join(' ')} --help\`.`
  return new UsageError(problem, hints.join(' ').replace(/^\((.*)\)$/, '$1') || otherwise)
}

/** Runs one command line. Never rejects: errors are printed and become an exit code. */
export async function run(words: readonly string[], shell: Shell): Promise<ExitCode> {
  let code: ExitCode = exit.ok
  const program = createProgram(shell, (answer) => {
    code = answer
  })
  bind(program, shell)
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
    if (isHelp && !json && !unknownCommand(program)) return exit.usage
    const command = shell.command
    const failure = thrown instanceof CommanderError ? usageError(thrown, command, program) : thrown
    // With `stdio`, print no JSON: stdout carries the protocol.
    const isStdio = program.args.length > 0 ? program.args[0] === 'stdio' : options.includes('stdio')
    const output = createOutput(shell, json && !isStdio)
    const expected = shell.interrupted.aborted && failure instanceof ToolwayError && failure.code === 'CANCELLED'
    if (!expected || json) {
      const { report } = await import('./failure.ts')
      report(failure, output, { command, cwd: shell.cwd, debug: log === 'debug' || log === 'trace' })
    }
    return exitCodeOf(failure)
  }
}

interface Interrupt {
  /** Aborted by the first SIGINT or SIGTERM: commands then stop their work and clean up. */
  readonly signal: AbortSignal
  /** Aborts `signal`, as the first SIGINT or SIGTERM does. */
  stop(): void
  receive(): void
}

/** A second signal within this time is ignored: the terminal and npm both send Ctrl+C, so one press arrives twice. */
const echoMs = 400

/** The first signal stops the command gracefully; the second calls `leave`, which ends the process. */
export function createInterrupt({ clock, leave }: { clock: Clock; leave: () => void }): Interrupt {
  const controller = new AbortController()
  let first: number | undefined
  const stop = () => controller.abort(new ToolwayError('CANCELLED', 'Interrupted.'))
  return {
    signal: controller.signal,
    stop,
    receive() {
      if (first !== undefined && clock.monotonic() - first > echoMs) return leave()
      first ??= clock.monotonic()
      stop()
    },
  }
}
