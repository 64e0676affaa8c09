import { Option } from 'commander'
import { clientKinds } from '../config/import/client-kind.ts'
import { durationUnits } from '../lib/duration.ts'
import {
  auditDecision,
  auditDecisions,
  choice,
  collect,
  durationMs,
  durationOption,
  lifetimeMs,
  mandatory,
  memorySize,
  type OptionValues,
  option,
  pageSize,
  portNumber,
  recordCount,
  type TypedOption,
  type TypedOptions,
  withDefault,
  workerCount,
} from './options.ts'

export interface CommandEntry {
  readonly about: string
  /** Descriptions of its arguments, by their notation. */
  readonly args?: Readonly<Record<string, string>>
  readonly options?: TypedOptions
  /** Calls of `toolway` that the help shows. */
  readonly examples?: readonly string[]
  /** The command of a group that runs if none is named. */
  readonly initial?: string
}

/** The options of every command. */
export const commonOptions = {
  config: option('-c, --config <file>', 'configuration file; repeat to merge several (later ones win)', collect),
  json: option('--json', 'print JSON'),
  log: choice('--log <level>', 'minimum level of log messages on stderr', [
    'trace',
    'debug',
    'info',
    'warn',
    'error',
    'fatal',
    'silent',
  ]),
}

const watch = option('--no-watch', 'do not reload when the configuration changes')
const maxMemory = option(
  '--max-memory <size>',
  'memory to stay within, such as 192M (default: what the container allows)',
  memorySize,
)
const agent = option('--agent <agent>', 'the agent to act as (default: the default agent)')
const server = option('--server <server>', 'only this server')
const dryRun = option('--dry-run', 'show the change without writing it')

/** How long commands wait for servers by default: the first start of a server may have to download its program. */
const defaultWait = '30s'
const wait = durationOption(
  '--wait <duration>',
  'how long to wait for servers whose tools are not known yet',
  defaultWait,
)

const offline = option('--offline', 'start servers separately instead of asking the running gateway')
const toolOptions = { agent, wait, offline }

const toolName = 'name of the tool, such as server.tool or server__tool'
const pinName = 'as `pins list` shows it'
const approvalId = { '<id>': 'as `approvals list` shows it' }

/** For commands that ask the running gateway. */
const gatewayOptions = {
  host: option('--host <host>', 'address of the gateway (default: as configured)'),
  port: option('--port <port>', 'port of the gateway (default: as configured)', portNumber),
}

const logOptions = {
  path: option('--path <folder>', 'log folder (default: as configured)'),
  postgres: option('--postgres', "read all replicas' records from PostgreSQL, in order of arrival"),
}

const filterOptions = {
  ...logOptions,
  since: option('--since <when>', 'no older than this: 30m, 7d, 2026-03-01, 2026-03-01T12:00 (UTC)'),
  until: option('--until <when>', 'older than this'),
  agent: option('--agent <name>', 'by this agent; * is a wildcard, here and below'),
  principal: option('--principal <name>', 'by this principal'),
  server: option('--server <name>', 'on this server'),
  tool: option('--tool <name>', 'of this tool, as tool or server.tool'),
  decision: new Option('--decision <decision>', 'with this decision')
    .choices(auditDecisions)
    .argParser(auditDecision) as TypedOption<string | undefined>,
  reason: option('--reason <word>', 'for this reason'),
  operation: option('--operation <name>', 'call_tool, read_resource, list …'),
  code: option('--code <code>', 'with this error code'),
  call: option('--call <id>', 'with this id'),
  parent: option('--parent <id>', 'made within this call'),
  text: option('--text <text>', 'with this text in the arguments; also as name=value'),
  errors: option('--errors', 'only calls in which the tool reported an error'),
}

const raw = option('--raw', 'print records instead of operations')

/** For commands that write files after a confirmation. */
const writeOptions = { dryRun, yes: option('--yes', 'do not ask for confirmation') }

const secrets = withDefault(
  choice('--secrets <where>', 'store secrets in files that only you can read, or refer to variables that you set', [
    'file',
    'env',
  ]),
  'file',
)

const expose = choice('--expose <mode>', "how the client sees tools, instead of the agent's mode", [
  ...(['auto', 'direct', 'meta', 'both', 'code'] as const),
])

/** All commands, by the words that select them. A group comes before its commands. */
export const commands = {
  serve: {
    about: 'serve all tools over HTTP',
    options: {
      host: option('--host <host>', 'address to listen on'),
      port: option('--port <port>', 'port to listen on, 0 for any free one', portNumber),
      watch,
      workers: option('--workers <count>', 'number of worker processes; auto: one per core', workerCount),
      maxMemory,
    },
  },
  stdio: {
    about: 'serve all tools to one client over stdin and stdout',
    options: {
      agent,
      endpoint: option('--endpoint <name>', 'serve only the tools of this endpoint'),
      ...{ expose, watch, maxMemory },
    },
  },
  servers: {
    about: 'connect to every server and show its state',
    options: {
      timeout: durationOption('--timeout <duration>', 'how long to wait for the servers', defaultWait),
      offline,
    },
  },
  add: {
    about: 'add a server to the configuration (--config names the file)',
    args: {
      '<name>': 'name of the server: letters, digits and _ . -',
      '<target...>': 'its URL, or -- and the command that starts it, with its arguments',
    },
    options: {
      env: option('-e, --env <KEY=VALUE>', 'an environment variable for the command; repeat for several', collect),
      header: option('-H, --header <header>', 'a header for the URL, as "Name: value"; repeat for several', collect),
      transport: choice('-t, --transport <transport>', 'transport for the URL (default: inferred)', [
        'http',
        'sse',
        'stdio',
      ]),
      allow: option('--allow <agent>', 'allow the server for an agent; repeat for several', collect),
      force: option('--force', 'replace an existing server with that name'),
      dryRun,
    },
    examples: [
      'toolway add files -- npx -y @modelcontextprotocol/server-filesystem .',
      'toolway add docs https://mcp.example.com/mcp --header "Authorization: Bearer $DOCS_TOKEN"',
    ],
  },
  remove: {
    about: 'remove a server from the configuration (--config names the file)',
    args: { '<name>': 'its name in the file' },
    options: { dryRun },
  },
  tools: { about: 'list the tools, or show one', initial: 'list' },
  'tools list': { about: 'list the tools', options: { server, ...toolOptions } },
  'tools show': {
    about: 'show a tool and its full definition',
    args: { '<name>': toolName },
    options: toolOptions,
  },
  'tools cost': {
    about: "show how many tokens the tools take in a model's context, by exposure mode and by tool",
    options: {
      server: option('--server <server>', "only this server's tools"),
      top: withDefault(option('--top <count>', 'how many tools to show, the most expensive first', recordCount), 10),
      ...toolOptions,
    },
  },
  'tools examples': {
    about: 'show the example tasks that the tool search knows, or let a model suggest some',
    options: {
      generate: option('--generate', 'suggest examples for tools that have none, to paste into the configuration'),
      model: option('--model <name>', 'the model to ask, by its name in the configuration'),
      server,
      top: withDefault(option('--top <count>', 'how many tools to suggest examples for', recordCount), 20),
      wait,
    },
  },
  search: { about: 'explain the tool search and what it has learned' },
  'search explain': {
    about: "show the matches of a task, and how much of each tool's score was learned",
    args: { '<query>': 'the task' },
    options: {
      agent,
      principal: option('--principal <principal>', 'whose own searches count in full (default: local)'),
      top: withDefault(option('--top <count>', 'how many matches to show', recordCount), 10),
      wait,
    },
  },
  'search forget': {
    about: 'forget what the tool search has learned: all of it, or only of an agent or tool',
    options: {
      agent: option('--agent <agent>', 'only what was learned as this agent'),
      tool: option('--tool <server.tool>', 'only what was learned for this tool'),
    },
  },
  call: {
    about: 'call a tool',
    args: {
      '<server.tool>': toolName,
      '[key=value...]': 'its arguments, typed by its input schema; key:=json forces JSON',
    },
    options: {
      args: option('--args <json>', 'arguments as a JSON object, @file to read them from a file, - from stdin'),
      out: option('--out <file>', 'write the first image, audio or file in the result to this file'),
      agent,
      timeout: option('--timeout <duration>', 'time limit for the call (default: as configured)', durationMs),
      wait,
      offline,
    },
    examples: [
      'toolway call native.time name=get_time_utc',
      'toolway call filesystem.read_multiple_files paths=a.txt paths=b.txt',
      'toolway call memory.create_entities --args @entities.json',
    ],
  },
  chat: {
    about: 'chat with a model that can use the tools: one message, or a conversation',
    args: { '[message...]': 'what to ask; - reads standard input (default: start a conversation)' },
    options: {
      model: option('--model <name>', 'the model to ask, by its name in the configuration'),
      mode: choice('--mode <mode>', 'how the answer is produced', ['staged', 'agent']),
      system: option('--system <text>', 'system message'),
      tools: option('--no-tools', 'answer without any tool'),
      only: option(
        '--only <server.tool>',
        'a tool that the model may use; * is a wildcard; repeat for several',
        collect,
      ),
      stream: option('--stream', 'with --json: print events as they arrive, one per line'),
      agent,
      wait,
    },
    examples: ['git diff | toolway chat "What does this change?" -'],
  },
  auth: {
    about: 'sign in to a server that requires OAuth',
    args: { '[server]': 'its name in the configuration' },
    options: {
      browser: option('--no-browser', 'print the sign-in address instead of opening a browser'),
      paste: option('--paste', "read the browser's final address from stdin (always possible on a terminal)"),
      list: option('--list', 'list the stored grants instead'),
      logout: option('--logout', 'delete the stored grant for this server instead'),
      principal: option('--principal <principal>', 'the principal to sign in, for servers with auth.perPrincipal'),
      timeout: durationOption('--timeout <duration>', 'how long to wait for the sign-in', '5m'),
    },
  },
  keys: { about: 'create, list, rotate and revoke API keys', initial: 'list' },
  'keys list': { about: 'list the keys in the configuration and in the key file' },
  'keys create': {
    about: 'create a key and show it once',
    args: { '<name>': 'name of the key, shown in the audit log' },
    options: {
      agent: option('--agent <agent>', 'an agent that the key may act as; repeat for several, "*" for all', collect),
      endpoint: option(
        '--endpoint <name>',
        'an endpoint that the key may connect to; repeat for several (default: all)',
        collect,
      ),
      admin: option('--admin', 'allow the admin interface'),
      expires: option('--expires <time>', 'lifetime of the key: 12h, 90d (default: unlimited)', lifetimeMs),
      hashOnly: option('--hash-only', 'print a line for auth.keys instead of storing the key'),
    },
  },
  'keys rotate': {
    about: 'give a key a new secret and show it once',
    args: { '<id>': 'the name of the key' },
    options: {
      keepOld: withDefault(
        option('--keep-old <time>', 'how long the old secret stays valid: 0, 1h, 7d', (text) =>
          text === '0' ? 0 : lifetimeMs(text),
        ),
        durationUnits.d,
        '1d',
      ),
    },
  },
  'keys revoke': { about: 'revoke a key', args: { '<id>': 'the name of the key' } },
  config: { about: 'show and undo edits of the configuration file', initial: 'history' },
  'config history': { about: 'list the edits that were made in the dashboard or through the admin API' },
  'config undo': {
    about: 'undo an edit: the last one, or the one with this id',
    args: { '[id]': 'the id that `config history` shows' },
    options: { dryRun },
  },
  audit: { about: 'read the audit log' },
  'audit tail': {
    about: 'show the last operations',
    options: {
      ...filterOptions,
      lines: withDefault(option('-n, --lines <count>', 'number of operations', recordCount), 20),
      follow: option('-f, --follow', 'print new operations as they are recorded'),
      raw,
    },
  },
  'audit query': {
    about: 'find operations, newest first',
    options: {
      ...filterOptions,
      limit: withDefault(option('--limit <count>', 'maximum number of operations', pageSize), 50),
      before: option('--before <cursor>', 'continue after a previous page'),
      raw,
      local: option('--local', "search only this machine's log, even if PostgreSQL has all replicas' records"),
    },
  },
  'audit verify': {
    about: 'check that no record was changed, removed, moved or cut off',
    options: { ...logOptions, publicKey: option('--public-key <file>', 'check signatures only with this key') },
  },
  'audit export': {
    about: 'export operations, oldest first',
    options: {
      ...filterOptions,
      format: withDefault(
        choice('--format <format>', 'JSON lines, or a table for a spreadsheet', ['jsonl', 'csv']),
        'jsonl',
      ),
      out: option('--out <file>', 'file to write (default: standard output)'),
      raw,
    },
  },
  why: {
    about: 'show whether an agent may use a tool, and which rule decides',
    args: { '<agent>': 'the agent', '<tool>': toolName },
    options: { anonymous: option('--anonymous', 'check for callers without a credential'), wait, offline },
    examples: ['toolway why researcher filesystem.write_file'],
  },
  pins: { about: 'show and approve pinned tool definitions', initial: 'list' },
  'pins list': {
    about: 'list the pinned definitions and their state',
    options: { server, changed: option('--changed', 'only definitions that are waiting for approval') },
  },
  'pins show': { about: 'compare the approved definition with the latest one', args: { '<server.tool>': pinName } },
  'pins approve': {
    about: 'approve the latest definition',
    args: { '[server.tool]': `${pinName}, or server.* for a whole server` },
    options: {
      all: option('--all', 'approve everything that is waiting for approval'),
      hash: option('--hash <hash>', 'exactly this definition, as `pins show` shows it'),
    },
  },
  approvals: { about: "show and answer calls that wait for a person's approval", initial: 'list' },
  'approvals list': {
    about: 'list the calls that wait in the running gateway',
    options: { ...gatewayOptions, follow: option('-f, --follow', 'print new ones as they come, until interrupted') },
  },
  'approvals allow': {
    about: 'allow a call',
    args: approvalId,
    options: { ...gatewayOptions, session: option('--session', 'allow this tool for the rest of the session') },
  },
  'approvals deny': {
    about: 'deny a call',
    args: approvalId,
    options: { ...gatewayOptions, reason: option('--reason <text>', 'why; the model reads it') },
  },
  policy: { about: 'try out a policy' },
  'policy replay': {
    about: 'apply another policy to recorded calls and show what would change',
    options: {
      ...logOptions,
      policy: mandatory(option('--policy <file>', 'configuration with the proposed agents and policy')),
      since: option('--since <when>', 'only calls no older than this: 30m, 7d, 2026-03-01'),
      until: option('--until <when>', 'only calls older than this'),
      strict: option(
        '--strict',
        'exit with code 4 if a call that was allowed would be denied or its tool would no longer exist',
      ),
    },
  },
  stats: {
    about: 'show statistics for the running gateway',
    options: {
      ...gatewayOptions,
      by: choice('--by <what>', 'show one table instead of all but tools', [
        'agent',
        'server',
        'operation',
        'agent-operation',
        'tool',
      ]),
      last: option('--last <duration>', 'only the last 15m, 1h, 7d (default: everything that is kept)', durationMs),
      output: option('--output <file>', 'write to a file (as JSON with --json)'),
      watch: option('-w, --watch', 'refresh until interrupted'),
      every: durationOption('--every <duration>', 'refresh interval', '2s'),
      offline: option('--offline', 'show what is kept in the state folder instead of asking the running gateway'),
    },
  },
  inbox: {
    about: 'show what needs attention in the running gateway',
    options: { ...gatewayOptions, follow: option('-f, --follow', 'print new items until interrupted') },
  },
  migrate: {
    about: 'migrate the PostgreSQL tables',
    options: { dryRun: option('--dry-run', 'show the migrations without applying them') },
  },
  validate: { about: 'check the configuration and show the files, servers and agents in it' },
  doctor: {
    about: 'check everything that a gateway needs, and show how to fix problems',
    options: {
      server,
      timeout: durationOption('--timeout <duration>', 'time limit for each server', '30s'),
      offline,
      strict: option('--strict', 'treat warnings as problems'),
    },
  },
  init: {
    about: 'write a configuration with the servers from all clients on this machine, or a starter',
    options: {
      ...writeOptions,
      output: option('--output <file>', 'the file to write (default: --config, or toolway.yaml)'),
      from: option('--from <client>', 'import only from this client; repeat for several', collect),
      secrets,
      force: option('--force', 'replace an existing file'),
    },
  },
  import: {
    about: "add the servers from another program's file to a configuration",
    args: {
      '<file>': 'a file from Claude, Cursor, VS Code, Codex, OpenCode, Gemini CLI, Windsurf, Zed, Cline and others',
    },
    options: {
      ...writeOptions,
      into: option('--into <file>', 'the configuration to add to (default: --config, or toolway.yaml)'),
      secrets,
    },
  },
  connect: {
    about: 'connect a client to Toolway; without a client, list the clients and their state',
    args: { '[client]': clientKinds.join(', ') },
    options: {
      ...writeOptions,
      agent: option('--agent <agent>', 'the agent that the client acts as (default: the default agent)'),
      endpoint: option('--endpoint <name>', 'connect to this endpoint, as toolway-NAME'),
      stdio: option('--stdio', 'the client starts Toolway (default)'),
      http: option('--http', 'the client connects to a running Toolway'),
      withToken: option('--with-token', "with --http: write the token itself into the client's file"),
      project: option('--project', "edit the client's file in this project instead of the user's"),
      replace: option('--replace', "move the client's other servers behind Toolway"),
      remove: option('--remove', 'remove the entry for Toolway and keep the rest'),
      undo: option('--undo', 'restore the original file'),
      force: option('--force', 'with --undo: restore the file even if it has changed since'),
    },
    examples: ['toolway connect', 'toolway connect cursor --replace', 'toolway connect cursor --undo'],
  },
} as const satisfies Readonly<Record<string, CommandEntry>>

type Commands = typeof commands

export type CommonOptions = OptionValues<typeof commonOptions>
export type GatewayAddressOptions = OptionValues<typeof gatewayOptions> & CommonOptions
export type LogPlaceOptions = OptionValues<typeof logOptions> & CommonOptions
export type AuditFilterOptions = OptionValues<typeof filterOptions> & CommonOptions

/** What a command gets as its last parameter. */
export type OptionsOf<Name extends keyof Commands> = CommonOptions &
  (Commands[Name] extends { readonly options: infer All extends TypedOptions } ? OptionValues<All> : unknown)
