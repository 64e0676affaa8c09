import { Command } from 'commander'
import { version } from '../runtime/package-paths.ts'
import { type CommandEntry, commands, commonOptions } from './command-table.ts'
import { columnsOf, createOutput, type ExitCode, exit, exitCodeHelp, type Shell, UsageError } from './kit.ts'
import type { TypedOptions } from './options.ts'

/**
 * Runs a command, which succeeded unless it returns another exit code or throws. Commander passes untyped arguments and
 * options, so each command declares their types.
 */
type Run = (shell: Shell, ...params: never[]) => Promise<ExitCode> | Promise<ExitCode | undefined> | Promise<void>

/** The code of the commands, which is loaded only when the command runs. */
const code: Readonly<Record<string, () => Promise<Run>>> = {
  serve: async () => (await import('./commands/serve.ts')).serve,
  stdio: async () => (await import('./commands/serve.ts')).stdio,
  servers: async () => (await import('./commands/servers.ts')).servers,
  add: async () => (await import('./commands/add.ts')).addServer,
  remove: async () => (await import('./commands/add.ts')).removeServer,
  'tools list': async () => (await import('./commands/tools.ts')).listTools,
  'tools show': async () => (await import('./commands/tools.ts')).showTool,
  'tools examples': async () => (await import('./commands/tool-examples.ts')).toolExamples,
  'search explain': async () => (await import('./commands/search.ts')).explainSearch,
  'search forget': async () => (await import('./commands/search.ts')).forgetSearches,
  'tools cost': async () => (await import('./commands/tools.ts')).showCost,
  call: async () => (await import('./commands/call.ts')).callTool,
  chat: async () => (await import('./chat/chat.ts')).chat,
  auth: async () => (await import('./commands/auth.ts')).auth,
  'keys list': async () => (await import('./commands/keys.ts')).listKeys,
  'keys create': async () => (await import('./commands/keys.ts')).createKey,
  'keys rotate': async () => (await import('./commands/keys.ts')).rotateKey,
  'keys revoke': async () => (await import('./commands/keys.ts')).revokeKey,
  'config history': async () => (await import('./commands/config-history.ts')).listEdits,
  'config undo': async () => (await import('./commands/config-history.ts')).undoEdit,
  'audit tail': async () => (await import('./commands/audit/tail.ts')).tailAudit,
  'audit query': async () => (await import('./commands/audit/query.ts')).queryAudit,
  'audit verify': async () => (await import('./commands/audit/verify.ts')).verifyLog,
  'audit export': async () => (await import('./commands/audit/query.ts')).exportAudit,
  why: async () => (await import('./commands/why.ts')).why,
  'pins list': async () => (await import('./commands/pins.ts')).listPins,
  'pins show': async () => (await import('./commands/pins.ts')).showPin,
  'pins approve': async () => (await import('./commands/pins.ts')).approvePins,
  'approvals list': async () => (await import('./commands/approvals.ts')).listApprovals,
  'approvals allow': async () => (await import('./commands/approvals.ts')).allowApproval,
  'approvals deny': async () => (await import('./commands/approvals.ts')).denyApproval,
  'policy replay': async () => (await import('./commands/policy.ts')).replayPolicy,
  stats: async () => (await import('./commands/stats.ts')).stats,
  inbox: async () => (await import('./commands/inbox.ts')).inbox,
  migrate: async () => (await import('./commands/migrate.ts')).migrateDatabase,
  validate: async () => (await import('./commands/validate.ts')).validate,
  doctor: async () => (await import('./doctor/doctor.ts')).doctor,
  init: async () => (await import('./commands/init.ts')).init,
  import: async () => (await import('./commands/import.ts')).importServers,
  connect: async () => (await import('./commands/connect.ts')).connect,
}

/** The commands and their options, for commander. */
export function createProgram(shell: Shell, finish: (code: ExitCode) => void): Command {
  const name = shell.command
  const { stdout, stderr } = shell
  const { paint } = createOutput(shell)
  const program = withOptions(new Command('toolway').version(version, '-V, --version'), commonOptions)
    // Subcommands inherit these three settings.
    .exitOverride()
    .configureHelp({ showGlobalOptions: true, styleTitle: (title) => paint('bold', title) })
    .configureOutput({
      writeOut: (text) => stdout.write(text),
      writeErr: (text) => stderr.write(text),
      outputError: () => {},
      getOutHelpWidth: () => columnsOf(stdout, 100),
      getErrHelpWidth: () => columnsOf(stderr, 100),
    })
    .description('One way to every tool: a gateway that puts many MCP servers behind one endpoint.')
    .addHelpText(
      'after',
      `
Examples:
  ${name} serve                                       serve the servers in ./toolway.yaml or ./.mcp.json
  ${name} serve --config servers.json --port 0
  ${name} tools --server memory
  ${name} call native.hash data=hello algorithm=sha256

${exitCodeHelp}`,
    )
  const groups = new Map<string, Command>()
  const entries: Readonly<Record<string, CommandEntry>> = commands
  for (const [words, entry] of Object.entries(entries)) {
    const [verb = '', group = ''] = words.split(' ').toReversed()
    const command = (groups.get(group) ?? program).command(verb, { isDefault: verb === entries[group]?.initial })
    groups.set(words, declare(command, entry, name))
    const load = code[words]
    if (load) command.action(actionOf(load, shell, finish))
  }
  return program
}

function declare(command: Command, { about, args = {}, options = {}, examples = [] }: CommandEntry, name: string) {
  command.description(about)
  for (const [notation, description] of Object.entries(args)) command.argument(notation, description)
  const title = examples.length > 1 ? 'Examples' : 'Example'
  const lines = examples.map((example) => `\n  ${example.replace('toolway', () => name)}`)
  if (lines.length > 0) command.addHelpText('after', `\n${title}:${lines.join('')}`)
  return withOptions(command, options)
}

const withOptions = (command: Command, options: TypedOptions): Command =>
  Object.values(options).reduce((one, option) => one.addOption(option), command)

const actionOf =
  (load: () => Promise<Run>, shell: Shell, finish: (code: ExitCode) => void) =>
  async (...params: unknown[]): Promise<void> => {
    if (shell.cwd === '') {
      throw new UsageError('The current folder no longer exists.', 'Change to another folder and try again.')
    }
    const run = await load()
    const options = (params.at(-1) as Command).optsWithGlobals()
    finish((await run(shell, ...([...params.slice(0, -2), options] as never[]))) ?? exit.ok)
  }
