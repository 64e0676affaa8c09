import { stringify } from 'yaml'
import { createRedactor } from '../../audit/redact/redactor.ts'
import { secretsOf } from '../../audit/redact/secrets.ts'
import type { ShownLine } from '../../catalog/pins/definition-diff.ts'
import { scanDefinition } from '../../catalog/scan/scan.ts'
import { valueAt } from '../../config/edit/edit-text.ts'
import { serverFormSchema } from '../../config/editor-schema.ts'
import { clientLabels } from '../../config/import/client-kind.ts'
import { referenceText } from '../../config/interpolate.ts'
import type { ConfigSource } from '../../config/locate.ts'
import { type ConfigProblem, problemText } from '../../config/problems.ts'
import type { ServerConfig } from '../../config/schema.ts'
import { secretSettings } from '../../config/schema-lookup.ts'
import type { Path } from '../../config/tree.ts'
import type { Definition } from '../../core/entry.ts'
import { invalidArguments, ToolwayError } from '../../core/errors.ts'
import { tokensOf } from '../../core/tokens.ts'
import { asRecord, isRecord } from '../../lib/is-record.ts'
import { quote } from '../../lib/message-text.ts'
import type { OAuth } from '../../runtime/oauth-sign-in.ts'
import { createServerProber, type ProbeResult } from '../../runtime/probe-server.ts'
import type { ReloadAttempt } from '../../runtime/reload.ts'
import { HttpError, rpcCodes } from '../../serve/errors.ts'
import { type AdminContext, audited } from '../context.ts'
import type { ConfigEdit, ConfigEditRecord, EditProposal, ReloadEvent, ServerTest } from '../contract.ts'
import type { ConfigEditService } from '../service.ts'
import type { ThreadMethods } from '../thread/admin-thread.ts'
import { createThreadClient } from '../thread/thread-client.ts'
import { clientServers } from './add-servers.ts'
import { redactConfig, reloadEventOf, targetOf } from './config.ts'
import { type ConfigEditor, createConfigEditor, EditConflict, type Proposal } from './config-editor.ts'
import { createEditHistory, type RecordedEdit } from './edit-history.ts'
import { createSecretHider } from './hide-secrets.ts'
import { createRegistryClient } from './registry.ts'

export interface ConfigEditAdmin extends ConfigEditService, AsyncDisposable {
  /** The configuration with an edit. Rejects if it would be invalid. */
  loadedWith(edit: ConfigEdit): Promise<NonNullable<Proposal['loaded']>>
  /** The content of the file without secrets, and the hash of what is at a path. */
  content(): Promise<{ readonly values: Readonly<Record<string, unknown>>; hashAt(path: Path): string }>
}

/** How long a test of a server may take. */
const testMs = 30_000
const maxTests = 3
const maxTestedServers = 20
const maxShown = 500

/**
 * Edits of the configuration file for the admin API. The file and the history are shared by all workers on a machine;
 * a replica on another machine edits its own file.
 */
export function createConfigEditAdmin(context: AdminContext): ConfigEditAdmin {
  const { current, source, reload, audit, auditKey, clock } = context
  const registryUrl = () => current().loaded.config.registry.url
  const registry = createRegistryClient(registryUrl, clock)
  const thread = createThreadClient({ name: 'configuration', failure, timeLimit, clock })
  let tests = 0

  let opened: Promise<ConfigEditor> | undefined
  const editorIn = (own: ConfigSource): Promise<ConfigEditor> => {
    opened ??= auditKey().then((key) =>
      createConfigEditor({
        source: own,
        redactor: () => current().redactor,
        history: createEditHistory(current().loaded.config.stores.path),
        key,
        now: () => clock.now(),
      }),
    )
    return opened
  }
  const requireSource = (): ConfigSource => {
    if (source) return source
    throw invalidArguments(notFromFile)
  }

  const proposalOf = async (edit: ConfigEdit) => {
    const { env, ...own } = requireSource()
    const { loaded, secrets } = current()
    const { audit, stores } = loaded.config
    return refusing(async () =>
      thread.request('propose', {
        // `process.env` cannot be copied to a thread.
        source: { ...own, env: { ...env } },
        edit,
        redacted: { secrets, keys: audit.redact },
        folder: stores.path,
        key: await auditKey(),
      }),
    )
  }

  const viewOf = ({
    file,
    notes,
    present,
    added,
    allowable,
    ...proposal
  }: Awaited<ReturnType<ThreadMethods['propose']>>): EditProposal => {
    const { text } = current().redactor
    return {
      file: file.path,
      hash: proposal.hash,
      editable: editableOf(file.obstacle),
      diff: proposal.diff.map(lineView),
      after: proposal.shown ?? null,
      paths: [...proposal.paths],
      problems: proposal.problems.map(({ key, line, message }) => ({ key, line, message: text(message) })),
      warnings: proposal.warnings.map(text),
      servers: changedServers(proposal),
      references: proposal.references.map((one) => ({ ...one, target: text(one.target) })),
      notes: notes.map(text),
      ...{ present, added, allowable },
    }
  }

  const content: ConfigEditAdmin['content'] = async () => {
    if (!source) return { values: {}, hashAt: () => '' }
    const { values, hashAt } = await (await editorIn(source)).content()
    return { values: asRecord(values), hashAt }
  }

  /** Reloads all processes. Returns this process's outcome. */
  const reloaded = async (): Promise<ReloadEvent> => {
    const attempts: ReloadAttempt[] = []
    using _ = reload.history.onAttempt((attempt) => attempts.push(attempt))
    await reload.now()
    const attempt = attempts.find(({ ok }) => !ok) ?? attempts.find(({ changes }) => changes.length > 0) ?? attempts[0]
    return reloadEventOf(attempt ?? { at: clock.now(), ok: true, error: null, changes: [] }, current().redactor)
  }

  return {
    [Symbol.asyncDispose]: () => thread[Symbol.asyncDispose](),
    async configFile() {
      if (!source) {
        const none = { path: '', exists: false, text: null, hash: '' }
        return { ...none, editable: { ok: false, reason: notFromFile } }
      }
      const editor = await editorIn(source)
      const { obstacle, text, ...file } = await editor.file()
      return { ...file, editable: editableOf(obstacle), text: text ?? null }
    },
    async loadedWith(edit) {
      const { loaded, problems } = await proposalOf(edit)
      if (loaded && problems.length === 0) return loaded
      throw wouldBeInvalid(problems)
    },
    content,
    previewEdit: async (edit) => viewOf(await proposalOf(edit)),
    async applyEdit(caller, edit, hash) {
      const editor = await editorIn(requireSource())
      const proposal = await proposalOf(edit)
      requireConfirmed(edit, proposal)
      const { file, paths } = proposal
      const action = {
        operation: edit.undo === undefined ? 'edit_config' : 'undo_config',
        arguments: { file: file.path, paths },
      }
      const recorded = await refusing(() =>
        audited(audit, caller, action, () =>
          coded(() => editor.apply(proposal, hash ?? proposal.hash, caller.principal)),
        ),
      )
      const before = current().servers
      const reload = await reloaded()
      // List the servers that were added: otherwise their tools stay unknown until a client lists them.
      const added = changedServers(proposal).filter((name) => !before.has(name))
      for (const name of added.slice(0, maxTestedServers)) void current().servers.get(name)?.server.refresh()
      return { edit: recordView(recorded), reload }
    },
    async configEdits() {
      if (!source) return []
      return (await (await editorIn(source)).history()).map(recordView)
    },
    async testServers(caller, edit, signal) {
      const proposal = await proposalOf(edit)
      const names = changedServers(proposal).slice(0, maxTestedServers)
      const { loaded, problems } = proposal
      if (!loaded) throw wouldBeInvalid(problems)
      requireConfirmed(edit, proposal)
      const [twin] = proposal.present
      if (names.length === 0)
        throw invalidArguments(
          `This edit changes no server${twin ? `: it is in the configuration as ${twin.as}` : ''}.`,
        )
      if (tests >= maxTests)
        throw new ToolwayError('OVERLOADED', 'Other servers are being tested: try again in a moment.')
      tests++
      try {
        const action = { operation: 'test_server', arguments: { servers: names } }
        return await audited(audit, caller, action, () => testAll(context, loaded, names, signal))
      } finally {
        tests--
      }
    },
    async foundServers() {
      if (!source) return []
      const known = new Set(Object.keys(current().loaded.config.mcpServers))
      const hider = createSecretHider(current().redactor, await auditKey())
      return (await clientServers(source)).flatMap(({ client, path, content }) =>
        content.servers.map(({ name, definition, problems }) => {
          const hidden = hider.hideValues({ mcpServers: { [name]: definition } })
          const shown = asRecord(asRecord(asRecord(hidden).mcpServers)[name])
          const problem = problems[0]?.message ?? null
          return {
            client: clientLabels[client],
            file: path,
            name,
            target: targetOf(shown),
            present: known.has(name),
            problem,
          }
        }),
      )
    },
    serverForm() {
      const url = registryUrl()
      return { ...serverFormSchema(), registry: url === undefined ? null : new URL(url).origin }
    },
    searchRegistry: registry.search,
    async serverDefinition(name) {
      const { loaded, redactor } = current()
      const all = asRecord(redactConfig(loaded.config, redactor).mcpServers)
      const effective = Object.hasOwn(all, name) ? all[name] : undefined
      const { path, editable } = await this.configFile()
      const inFile = await content().catch(() => undefined)
      const value = valueAt(inFile?.values, ['mcpServers', name])
      // Merged values are written elsewhere, so a form could neither show nor change them.
      const isMerged = hasMergeKey(value)
      const definition = isRecord(value) && !isMerged ? value : null
      if (definition === null && effective === undefined) {
        throw new ToolwayError('SERVER_NOT_FOUND', `The configuration has no server ${quote(name)}.`)
      }
      const reason = isMerged
        ? `${name} uses a YAML merge key (<<) in ${path}. Change it with a text editor, or edit the file on the Configuration page.`
        : `${name} is not defined in ${path}.`
      return {
        name,
        target: targetOf(asRecord(definition ?? effective)),
        file: path,
        editable: definition === null && editable.ok ? { ok: false, reason } : editable,
        definition,
        yaml: definition === null ? '' : stringify(definition, { lineWidth: 0 }),
        hash: inFile?.hashAt(['mcpServers', name]) ?? '',
      }
    },
  }
}

/** Recreates a conflict in the thread that prepares edits. */
const failure = (cause: Error): Error => (cause.name === 'EditConflict' ? new EditConflict(cause.message) : cause)

const timeLimit = {
  ms: 30_000,
  error: () => invalidArguments('This edit could not be checked within 30 s: edit the file with a text editor.'),
}

/** Throws if an edit adds references that no person has confirmed. */
function requireConfirmed({ references: confirmed = [] }: ConfigEdit, { references }: Proposal): void {
  const open = references.filter(({ reference }) => !confirmed.includes(reference))
  if (open.length === 0) return
  throw invalidArguments(`Confirm what this edit reads, in \`references\`: ${open.map(referenceText).join(', ')}.`)
}

const notFromFile = 'This gateway was started by a program, which owns its configuration.'

const hasMergeKey = (value: unknown): boolean =>
  isRecord(value) && Object.entries(value).some(([key, part]) => key === '<<' || hasMergeKey(part))

const editableOf = (obstacle: string | undefined) =>
  obstacle === undefined ? { ok: true } : { ok: false, reason: obstacle }

const lineView = ([mark, text]: ShownLine) => ({ mark, text: text.slice(0, 2_000) })

const recordView = ({ id, at, by, file, paths, undoes, diff }: RecordedEdit): ConfigEditRecord => ({
  ...{ id, at, by, file, paths, undoes: undoes ?? null },
  diff: diff.map(lineView),
})

/** Reports a conflict with a code of its own in HTTP, and as an invalid request in the audit log. */
const coded = <T>(work: () => Promise<T>): Promise<T> =>
  work().catch((thrown: unknown) => {
    if (!(thrown instanceof EditConflict)) throw thrown
    throw new ToolwayError('INVALID_ARGUMENTS', thrown.message, { cause: thrown, auditReason: 'conflict' })
  })

async function refusing<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (thrown) {
    const cause = thrown instanceof ToolwayError ? thrown.details.cause : thrown
    if (cause instanceof EditConflict) throw new HttpError(409, rpcCodes.request, cause.message)
    throw thrown
  }
}

/** The error for an edit that cannot be loaded. If the edit causes no new problem, the file has one already. */
function wouldBeInvalid([first]: readonly ConfigProblem[]): ToolwayError {
  if (first) return invalidArguments(`The configuration would be invalid: ${problemText(first)}.`)
  return invalidArguments('The configuration file is invalid without this edit, too: fix its problems first.')
}

/** The servers that a proposal adds or changes and that exist afterwards. */
function changedServers({ paths, loaded }: Pick<Proposal, 'paths' | 'loaded'>): string[] {
  const names = Object.keys(loaded?.config.mcpServers ?? {})
  return names.filter((name) =>
    paths.some((path) => {
      const [section, server] = path.split(/[.[]/)
      return (
        section === 'mcpServers' &&
        (server === undefined || server === name || server === JSON.stringify(name).concat(']'))
      )
    }),
  )
}

/** Starts each server once. No process is left behind. */
async function testAll(
  { oauth, ...context }: AdminContext,
  loaded: NonNullable<Proposal['loaded']>,
  names: readonly string[],
  signal: AbortSignal,
): Promise<ServerTest[]> {
  const { config } = loaded
  const secrets = secretsOf(config, secretSettings(config), loaded.secrets)
  const known = createRedactor({ secrets, keys: config.audit.redact })
  const redact = (text: string) => context.current().redactor.text(known.text(text))
  const { clock, log } = context
  // Only a server that is already in the configuration can have a token; testing others stores nothing.
  const saved = context.current().loaded.config.mcpServers
  const authorize: OAuth['authorize'] = (name, tested, principal) =>
    urlOf(saved[name]) === urlOf(tested) ? oauth?.authorize(name, tested, principal) : undefined
  const options = { redact, oauth: { authorize }, limits: config.discovery, clock, log }
  await using prober = createServerProber(options)
  const results: ServerTest[] = []
  for (const name of names) {
    const tested = config.mcpServers[name] as ServerConfig
    const found = await prober.probe(name, tested, testMs, signal)
    results.push(testView(name, found, tested, redact))
  }
  return results
}

const urlOf = (config: ServerConfig | undefined): string | undefined =>
  config && config.transport !== 'stdio' ? config.url : undefined

/** Whether a tested server only requires a sign-in, and whether its definition has to be changed for that. */
function signInOf({ failure }: ProbeResult, tested: ServerConfig) {
  if (!failure || tested.transport === 'stdio') return { needsSignIn: false, lacksOAuth: false }
  const { auth, headers } = tested
  const hasCredential =
    auth !== undefined || Object.keys(headers).some((name) => name.toLowerCase() === 'authorization')
  const usesOAuth = auth?.type === 'oauth' && auth.grant !== 'client_credentials'
  const lacksOAuth = failure.offersOAuth && !hasCredential
  return {
    needsSignIn: lacksOAuth || failure.signIn !== undefined || (usesOAuth && failure.status === 401),
    lacksOAuth,
  }
}

function testView(
  name: string,
  found: ProbeResult,
  tested: ServerConfig,
  redact: (text: string) => string,
): ServerTest {
  const { tools = [], resources = [], templates = [], prompts = [] } = found.lists ?? {}
  const all: readonly Definition[] = [...tools, ...resources, ...templates, ...prompts]
  const own = tools.map((tool) => ({
    name: redact(String(tool.name)),
    description: redact(String(tool.description ?? '')).slice(0, 1_000),
    tokens: tokensOf(String(tool.name), tool),
  }))
  const addressOf = (one: Definition) => redact(String(one.uri ?? one.uriTemplate ?? one.name))
  return {
    name,
    ok: found.failure === undefined,
    error: found.failure?.message ?? null,
    ...signInOf(found, tested),
    transport: found.transport,
    protocolVersion: found.protocolVersion ?? null,
    reports: found.calls ?? null,
    startMs: found.startMs ?? null,
    tools: own.slice(0, maxShown),
    tokens: own.reduce((sum, { tokens }) => sum + tokens, 0),
    prompts: prompts.slice(0, maxShown).map((prompt) => redact(String(prompt.name))),
    resources: [...resources, ...templates].slice(0, maxShown).map(addressOf),
    findings: all
      .slice(0, 2_000)
      .flatMap((definition) =>
        scanDefinition(definition).map(({ kind, severity, where, excerpt }) => ({
          ...{ item: redact(String(definition.name)), kind, severity, where },
          excerpt: redact(excerpt),
        })),
      )
      .slice(0, 100),
    remarks: [...found.remarks, ...(found.findings ?? []).map(({ message }) => message)].map(redact),
    stderr: found.stderr.slice(-50).map(redact),
  }
}
