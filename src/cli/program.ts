import { availableParallelism } from 'node:os'
import { Command, type CommandOptions, InvalidArgumentError, Option } from 'commander'
import { clientKinds } from '../config/import/client-kind.ts'
import { durationUnits, parseDuration } from '../lib/duration.ts'
import { version } from '../runtime/package-paths.ts'
import { pageSize, recordCount, withFilterOptions, withLogOptions } from './commands/audit/options.ts'
import { type ExitCode, exitCodeHelp, type Shell, UsageError } from './kit.ts'

function portNumber(text: string): number {
  const port = Number(text)
  if (/^\d+$/.test(text) && port <= 65_535) return port
  throw new InvalidArgumentError('Expected a number from 0 (any free port) to 65535.')
}

function workerCount(text: string): number {
  if (text === 'auto') return availableParallelism()
  if (/^\d{1,2}$/.test(text) && Number(text) >= 1) return Number(text)
  throw new InvalidArgumentError('Expected auto (one per core), or a number from 1 to 99.')
}

/** A size such as `256M`, in bytes. */
function memorySize(text: string): number {
  const [, count, unit] = /^(\d{1,6})(M|G)(?:i?B)?$/i.exec(text) ?? []
  const bytes = Number(count) * 1024 ** (unit?.toUpperCase() === 'G' ? 3 : 2)
  if (bytes >= minMemory) return bytes
  throw new InvalidArgumentError('Expected a size such as 192M or 1G, at least 64M.')
}

const minMemory = 64 * 1024 ** 2

const maxMemory = (): Option =>
  new Option(
    '--max-memory <size>',
    'memory to stay within, such as 192M (default: what the container allows)',
  ).argParser(memorySize)

/** Options for commands that ask the running gateway. */
const withGatewayOptions = (command: Command): Command =>
  command
    .option('--host <host>', 'address of the gateway (default: as configured)')
    .option('--port <port>', 'port of the gateway (default: as configured)', portNumber)

const choice = (flags: string, description: string, choices: string): Option =>
  new Option(flags, description).choices(choices.split(' '))

const duration = (flags: string, description: string, initial?: string): Option => {
  const option = new Option(flags, description).argParser(durationMs)
  return initial === undefined ? option : option.default(durationMs(initial), initial)
}

const timeout = (description: string, initial?: string): Option =>
  duration('--timeout <duration>', description, initial)

/** How long commands wait for servers by default: the first start of a server may have to download its program. */
const defaultWait = '30s'

const wait = (): Option =>
  duration('--wait <duration>', 'how long to wait for servers whose tools are not known yet', defaultWait)

const offline = (): Option => new Option('--offline', 'start servers separately instead of asking the running gateway')

const agent = (): Option => new Option('--agent <agent>', 'the agent to act as (default: the default agent)')

/** Runs a command. Commander passes untyped arguments and options, so each command declares their types. */
type Run = (shell: Shell, ...params: never[]) => Promise<ExitCode>

/** The commands and their options. A command's code is loaded only when the command runs. */
export function createProgram(shell: Shell, finish: (code: ExitCode) => void): Command {
  const name = shell.command
  const command = (parent: Command, verb: string, load: () => Promise<Run>, how?: CommandOptions): Command =>
    parent.command(verb, how).action(async (...params: unknown[]) => {
      if (shell.cwd === '') {
        throw new UsageError('The current folder no longer exists.', 'Change to another folder and try again.')
      }
      const run = await load()
      const options = (params.at(-1) as Command).optsWithGlobals()
      finish(await run(shell, ...([...params.slice(0, -2), options] as never[])))
    })

  const program = new Command('toolway')
    .description('One way to every tool: a gateway that puts many MCP servers behind one endpoint.')
    .version(version, '-V, --version')
    .option('-c, --config <file>', 'configuration file; repeat to merge several (later ones win)', collect)
    .option('--json', 'print JSON')
    .addOption(
      choice('--log <level>', 'minimum level of log messages on stderr', 'trace debug info warn error fatal silent'),
    )
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

  command(program, 'serve', async () => (await import('./commands/serve.ts')).serve)
    .description('serve all tools over HTTP')
    .option('--host <host>', 'address to listen on')
    .option('--port <port>', 'port to listen on, 0 for any free one', portNumber)
    .option('--no-watch', 'do not reload when the configuration changes')
    .option('--workers <count>', 'number of worker processes; auto: one per core', workerCount)
    .addOption(maxMemory())

  command(program, 'stdio', async () => (await import('./commands/serve.ts')).stdio)
    .description('serve all tools to one client over stdin and stdout')
    .addOption(agent())
    .option('--no-watch', 'do not reload when the configuration changes')
    .addOption(maxMemory())

  command(program, 'servers', async () => (await import('./commands/servers.ts')).servers)
    .description('connect to every server and show its state')
    .addOption(timeout('how long to wait for the servers', defaultWait))
    .addOption(offline())

  command(program, 'add', async () => (await import('./commands/add.ts')).addServer)
    .description('add a server to the configuration (--config names the file)')
    .argument('<name>', 'name of the server: letters, digits and _ . -')
    .argument('<target...>', 'its URL, or -- and the command that starts it, with its arguments')
    .option('-e, --env <KEY=VALUE>', 'an environment variable for the command; repeat for several', collect)
    .option('-H, --header <header>', 'a header for the URL, as "Name: value"; repeat for several', collect)
    .addOption(choice('-t, --transport <transport>', 'transport for the URL (default: inferred)', 'http sse stdio'))
    .option('--allow <agent>', 'allow the server for an agent; repeat for several', collect)
    .option('--force', 'replace an existing server with that name')
    .option('--dry-run', 'show the change without writing it')
    .addHelpText(
      'after',
      `
Examples:
  ${name} add files -- npx -y @modelcontextprotocol/server-filesystem .
  ${name} add docs https://mcp.example.com/mcp --header "Authorization: Bearer $DOCS_TOKEN"`,
    )

  command(program, 'remove', async () => (await import('./commands/add.ts')).removeServer)
    .description('remove a server from the configuration (--config names the file)')
    .argument('<name>', 'its name in the file')
    .option('--dry-run', 'show the change without writing it')

  const tools = program.command('tools').description('list the tools, or show one')
  command(tools, 'list', async () => (await import('./commands/tools.ts')).listTools, { isDefault: true })
    .description('list the tools')
    .option('--server <server>', 'only this server')
    .addOption(agent())
    .addOption(wait())
    .addOption(offline())
  command(tools, 'show', async () => (await import('./commands/tools.ts')).showTool)
    .description('show a tool and its full definition')
    .argument('<name>', 'name of the tool, such as server.tool or server__tool')
    .addOption(agent())
    .addOption(wait())
    .addOption(offline())
  command(tools, 'cost', async () => (await import('./commands/tools.ts')).showCost)
    .description("show how many tokens the tools take in a model's context, by exposure mode and by tool")
    .option('--server <server>', "only this server's tools")
    .option('--top <count>', 'how many tools to show, the most expensive first', recordCount, 10)
    .addOption(agent())
    .addOption(wait())
    .addOption(offline())

  command(program, 'call', async () => (await import('./commands/call.ts')).callTool)
    .description('call a tool')
    .argument('<server.tool>', 'name of the tool, such as server.tool or server__tool')
    .argument('[key=value...]', 'its arguments, typed by its input schema; key:=json forces JSON')
    .option('--args <json>', 'arguments as a JSON object, @file to read them from a file, - from stdin')
    .option('--out <file>', 'write the first image, audio or file in the result to this file')
    .addOption(agent())
    .addOption(timeout('time limit for the call (default: as configured)'))
    .addOption(wait())
    .addOption(offline())
    .addHelpText(
      'after',
      `
Examples:
  ${name} call native.time name=get_time_utc
  ${name} call filesystem.read_multiple_files paths=a.txt paths=b.txt
  ${name} call memory.create_entities --args @entities.json`,
    )

  command(program, 'chat', async () => (await import('./chat/chat.ts')).chat)
    .description('chat with a model that can use the tools: one message, or a conversation')
    .argument('[message...]', 'what to ask; - reads standard input (default: start a conversation)')
    .option('--model <name>', 'the model to ask, by its name in the configuration')
    .addOption(choice('--mode <mode>', 'how the answer is produced', 'staged agent'))
    .option('--system <text>', 'system message')
    .option('--no-tools', 'answer without any tool')
    .option('--only <server.tool>', 'a tool that the model may use; * is a wildcard; repeat for several', collect)
    .option('--stream', 'with --json: print events as they arrive, one per line')
    .addOption(agent())
    .addOption(wait())
    .addHelpText('after', `\nExample:\n  git diff | ${name} chat "What does this change?" -`)

  command(program, 'auth', async () => (await import('./commands/auth.ts')).auth)
    .description('sign in to a server that requires OAuth')
    .argument('[server]', 'its name in the configuration')
    .option('--no-browser', 'print the sign-in address instead of opening a browser')
    .option('--paste', "read the browser's final address from stdin (always possible on a terminal)")
    .option('--list', 'list the stored grants instead')
    .option('--logout', 'delete the stored grant for this server instead')
    .option('--principal <principal>', 'the principal to sign in, for servers with auth.perPrincipal')
    .addOption(timeout('how long to wait for the sign-in', '5m'))

  const keys = program.command('keys').description('create, list, rotate and revoke API keys')
  command(keys, 'list', async () => (await import('./commands/keys.ts')).listKeys, { isDefault: true }).description(
    'list the keys in the configuration and in the key file',
  )
  command(keys, 'create', async () => (await import('./commands/keys.ts')).createKey)
    .description('create a key and show it once')
    .argument('<name>', 'name of the key, shown in the audit log')
    .option('--agent <agent>', 'an agent that the key may act as; repeat for several, "*" for all', collect)
    .option('--admin', 'allow the admin interface')
    .option('--expires <time>', 'lifetime of the key: 12h, 90d (default: unlimited)', lifetimeMs)
    .option('--hash-only', 'print a line for auth.keys instead of storing the key')
  command(keys, 'rotate', async () => (await import('./commands/keys.ts')).rotateKey)
    .description('give a key a new secret and show it once')
    .argument('<id>', 'the name of the key')
    .addOption(
      new Option('--keep-old <time>', 'how long the old secret stays valid: 0, 1h, 7d')
        .default(durationUnits.d, '1d')
        .argParser((text) => (text === '0' ? 0 : lifetimeMs(text))),
    )
  command(keys, 'revoke', async () => (await import('./commands/keys.ts')).revokeKey)
    .description('revoke a key')
    .argument('<id>', 'the name of the key')

  const edits = program.command('config').description('show and undo edits of the configuration file')
  const editCommands = async () => import('./commands/config-history.ts')
  command(edits, 'history', async () => (await editCommands()).listEdits, { isDefault: true }).description(
    'list the edits that were made in the dashboard or through the admin API',
  )
  command(edits, 'undo', async () => (await editCommands()).undoEdit)
    .description('undo an edit: the last one, or the one with this id')
    .argument('[id]', 'the id that `config history` shows')
    .option('--dry-run', 'show the change without writing it')

  const audit = program.command('audit').description('read the audit log')
  withFilterOptions(command(audit, 'tail', async () => (await import('./commands/audit/tail.ts')).tailAudit))
    .description('show the last operations')
    .option('-n, --lines <count>', 'number of operations', recordCount, 20)
    .option('-f, --follow', 'print new operations as they are recorded')
    .option('--raw', 'print records instead of operations')
  withFilterOptions(command(audit, 'query', async () => (await import('./commands/audit/query.ts')).queryAudit))
    .description('find operations, newest first')
    .option('--limit <count>', 'maximum number of operations', pageSize, 50)
    .option('--before <cursor>', 'continue after a previous page')
    .option('--raw', 'print records instead of operations')
    .option('--local', "search only this machine's log, even if PostgreSQL has all replicas' records")
  withLogOptions(command(audit, 'verify', async () => (await import('./commands/audit/verify.ts')).verifyLog))
    .description('check that no record was changed, removed, moved or cut off')
    .option('--public-key <file>', 'check signatures only with this key')
  withFilterOptions(command(audit, 'export', async () => (await import('./commands/audit/export.ts')).exportAudit))
    .description('export operations, oldest first')
    .addOption(choice('--format <format>', 'JSON lines, or a table for a spreadsheet', 'jsonl csv').default('jsonl'))
    .option('--out <file>', 'file to write (default: standard output)')
    .option('--raw', 'print records instead of operations')

  command(program, 'why', async () => (await import('./commands/why.ts')).why)
    .description('show whether an agent may use a tool, and which rule decides')
    .argument('<agent>', 'the agent')
    .argument('<tool>', 'name of the tool, such as server.tool or server__tool')
    .option('--anonymous', 'check for callers without a credential')
    .addOption(wait())
    .addOption(offline())
    .addHelpText('after', `\nExample:\n  ${name} why researcher filesystem.write_file`)

  const pins = program.command('pins').description('show and approve pinned tool definitions')
  command(pins, 'list', async () => (await import('./commands/pins.ts')).listPins, { isDefault: true })
    .description('list the pinned definitions and their state')
    .option('--server <server>', 'only this server')
    .option('--changed', 'only definitions that are waiting for approval')
  command(pins, 'show', async () => (await import('./commands/pins.ts')).showPin)
    .description('compare the approved definition with the latest one')
    .argument('<server.tool>', 'as `pins list` shows it')
  command(pins, 'approve', async () => (await import('./commands/pins.ts')).approvePins)
    .description('approve the latest definition')
    .argument('[server.tool]', 'as `pins list` shows it, or server.* for a whole server')
    .option('--all', 'approve everything that is waiting for approval')
    .option('--hash <hash>', 'exactly this definition, as `pins show` shows it')

  const approvals = program.command('approvals').description("show and answer calls that wait for a person's approval")
  withGatewayOptions(
    command(approvals, 'list', async () => (await import('./commands/approvals.ts')).listApprovals, {
      isDefault: true,
    }),
  )
    .description('list the calls that wait in the running gateway')
    .option('-f, --follow', 'print new ones as they come, until interrupted')
  withGatewayOptions(command(approvals, 'allow', async () => (await import('./commands/approvals.ts')).allowApproval))
    .description('allow a call')
    .argument('<id>', 'as `approvals list` shows it')
    .option('--session', 'allow this tool for the rest of the session')
  withGatewayOptions(command(approvals, 'deny', async () => (await import('./commands/approvals.ts')).denyApproval))
    .description('deny a call')
    .argument('<id>', 'as `approvals list` shows it')
    .option('--reason <text>', 'why; the model reads it')

  const policy = program.command('policy').description('try out a policy')
  withLogOptions(command(policy, 'replay', async () => (await import('./commands/policy.ts')).replayPolicy))
    .description('apply another policy to recorded calls and show what would change')
    .requiredOption('--policy <file>', 'configuration with the proposed agents and policy')
    .option('--since <when>', 'only calls no older than this: 30m, 7d, 2026-03-01')
    .option('--until <when>', 'only calls older than this')
    .option('--strict', 'exit with code 4 if a call that was allowed would be denied or its tool would no longer exist')

  withGatewayOptions(command(program, 'stats', async () => (await import('./commands/stats.ts')).stats))
    .description('show statistics for the running gateway')
    .addOption(
      choice('--by <what>', 'show one table instead of all but tools', 'agent server operation agent-operation tool'),
    )
    .addOption(duration('--last <duration>', 'only the last 15m, 1h, 7d (default: everything that is kept)'))
    .option('--output <file>', 'write to a file (as JSON with --json)')
    .option('-w, --watch', 'refresh until interrupted')
    .addOption(duration('--every <duration>', 'refresh interval', '2s'))
    .option('--offline', 'show what is kept in the state folder instead of asking the running gateway')

  withGatewayOptions(command(program, 'inbox', async () => (await import('./commands/inbox.ts')).inbox))
    .description('show what needs attention in the running gateway')
    .option('-f, --follow', 'print new items until interrupted')

  command(program, 'migrate', async () => (await import('./commands/migrate.ts')).migrateDatabase)
    .description('migrate the PostgreSQL tables')
    .option('--dry-run', 'show the migrations without applying them')

  command(program, 'validate', async () => (await import('./commands/validate.ts')).validate).description(
    'check the configuration and show the files, servers and agents in it',
  )

  command(program, 'doctor', async () => (await import('./doctor/doctor.ts')).doctor)
    .description('check everything that a gateway needs, and show how to fix problems')
    .option('--server <server>', 'only this server')
    .addOption(timeout('time limit for each server', '30s'))
    .addOption(offline())
    .option('--strict', 'treat warnings as problems')

  withWriteOptions(command(program, 'init', async () => (await import('./commands/init.ts')).init))
    .description('write a configuration with the servers from all clients on this machine, or a starter')
    .option('--output <file>', 'the file to write (default: --config, or toolway.yaml)')
    .option('--from <client>', 'import only from this client; repeat for several', collect)
    .addOption(secrets())
    .option('--force', 'replace an existing file')

  withWriteOptions(command(program, 'import', async () => (await import('./commands/import.ts')).importServers))
    .description("add the servers from another program's file to a configuration")
    .argument(
      '<file>',
      'a file from Claude, Cursor, VS Code, Codex, OpenCode, Gemini CLI, Windsurf, Zed, Cline and others',
    )
    .option('--into <file>', 'the configuration to add to (default: --config, or toolway.yaml)')
    .addOption(secrets())

  withWriteOptions(command(program, 'connect', async () => (await import('./commands/connect.ts')).connect))
    .description('connect a client to Toolway; without a client, list the clients and their state')
    .argument('[client]', clientKinds.join(', '))
    .option('--agent <agent>', 'the agent that the client acts as (default: the default agent)')
    .option('--stdio', 'the client starts Toolway (default)')
    .option('--http', 'the client connects to a running Toolway')
    .option('--with-token', "with --http: write the token itself into the client's file")
    .option('--project', "edit the client's file in this project instead of the user's")
    .option('--replace', "move the client's other servers behind Toolway")
    .option('--remove', 'remove the entry for Toolway and keep the rest')
    .option('--undo', 'restore the original file')
    .option('--force', 'with --undo: restore the file even if it has changed since')
    .addHelpText(
      'after',
      `\nExamples:\n  ${name} connect\n  ${name} connect cursor --replace\n  ${name} connect cursor --undo`,
    )

  return program
}

/** Parses `500ms`, `30s`, `5m` or `1h`, as in the configuration, to milliseconds. */
export function durationMs(text: string): number {
  const ms = parseDuration(text)
  if (ms === undefined) throw new InvalidArgumentError('Expected a duration such as 500ms, 30s, 5m or 1h.')
  if (ms < 1 || ms > 2 ** 31 - 1) throw new InvalidArgumentError('Expected a duration between 1ms and 24 days.')
  return ms
}

const maxDays = 3_650

/** Parses `30m`, `12h` or `90d`, used for key lifetimes, to milliseconds. */
export function lifetimeMs(text: string): number {
  const ms = /^\d+[mhd]$/.test(text.trim()) ? parseDuration(text) : undefined
  if (ms === undefined) throw new InvalidArgumentError('Expected a duration such as 30m, 12h or 90d.')
  if (ms > 0 && ms <= maxDays * durationUnits.d) return ms
  throw new InvalidArgumentError(`Expected a duration between 1m and ${maxDays}d.`)
}

const secretStorage = 'store secrets in files that only you can read, or refer to variables that you set'
const secrets = (): Option => choice('--secrets <where>', secretStorage, 'file env').default('file')

const collect = (value: string, before: readonly string[] = []): readonly string[] => [...before, value]

const withWriteOptions = (command: Command): Command =>
  command.option('--dry-run', 'show the change without writing it').option('--yes', 'do not ask for confirmation')
