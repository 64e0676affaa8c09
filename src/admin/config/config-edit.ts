import { stringify } from 'yaml'
import * as z from 'zod'
import type { ShownLine } from '../../catalog/pins/definition.ts'
import type { FoundFile } from '../../clients/import-plan.ts'
import { valueAt } from '../../config/edit/edit-text.ts'
import { serverFormSchema } from '../../config/editor-schema.ts'
import { clientLabels } from '../../config/import/client-kind.ts'
import { referenceText } from '../../config/interpolate.ts'
import type { ConfigSource } from '../../config/locate.ts'
import { type ConfigProblem, problemText } from '../../config/problems.ts'
import { isWithin, keyPath, type Path } from '../../config/tree.ts'
import type { Caller } from '../../core/call.ts'
import { invalidArguments, ToolwayError } from '../../core/errors.ts'
import { asRecord, isRecord } from '../../lib/is-record.ts'
import { quote } from '../../lib/message-text.ts'
import { type AdminContext, auditOperation } from '../context.ts'
import type {
  AppliedEdit,
  ConfigEdit,
  ConfigEditRecord,
  ConfigFileView,
  EditProposal,
  FoundServerView,
  ServerDefinitionView,
  ServerForm,
  ServerTest,
} from '../contract.ts'
import { adminRoute, type Route } from '../router.ts'
import { createThreadClient } from '../thread/thread-client.ts'
import { redactConfig, reloadAll, serverTarget } from './config.ts'
import { ConfigEditor, type Proposal } from './config-editor.ts'
import { createEditHistory, type RecordedEdit } from './edit-history.ts'
import { type EditSummary, readClientFiles } from './propose-edit.ts'
import { createRegistryClient } from './registry.ts'
import * as schema from './schema.ts'
import { SecretMask } from './secret-mask.ts'
import { testServers } from './test-servers.ts'

export type ConfigEditService = ReturnType<typeof createConfigEditAdmin>

const maxTestedServers = 20

/**
 * Edits of the configuration file for the admin API. The file and the history are shared by all workers on a machine;
 * a replica on another machine edits its own file.
 */
export function createConfigEditAdmin(context: AdminContext, edits: ConfigEdits) {
  const { current, source, clock } = context
  const registryUrl = () => current().loaded.config.registry.url
  return {
    configFile: (): Promise<ConfigFileView> => edits.file(),
    previewEdit: async (edit: ConfigEdit): Promise<EditProposal> =>
      proposalView(await edits.propose(edit), current().redactor.text),
    /** Writes an edit and reloads. Rejects with a conflict if it would not write what the preview with `hash` showed. */
    applyEdit: (caller: Caller, edit: ConfigEdit, hash?: string): Promise<AppliedEdit> =>
      edits.apply(caller, edit, hash),
    configEdits: (): Promise<ConfigEditRecord[]> => edits.history(),
    testServers: (caller: Caller, edit: ConfigEdit, signal: AbortSignal): Promise<readonly ServerTest[]> =>
      testEdit(context, edits, { caller, edit, signal }),
    async foundServers(): Promise<readonly FoundServerView[]> {
      if (!source) return []
      const known = new Set(Object.keys(current().loaded.config.mcpServers))
      const mask = new SecretMask(current().redactor, await context.auditKey())
      return (await readClientFiles(source)).flatMap((file) => foundViews(file, mask, known))
    },
    serverForm(): ServerForm {
      const url = registryUrl()
      return { ...serverFormSchema(), registry: url === undefined ? null : new URL(url).origin }
    },
    /** Searches the MCP registry of the setting `registry.url`. Rejects if there is none. */
    searchRegistry: createRegistryClient(registryUrl, clock).search,
    serverDefinition: (name: string): Promise<ServerDefinitionView> => definitionView(name, context, edits),
  }
}

export class ConfigEdits implements AsyncDisposable {
  readonly #context: AdminContext
  /** Checks edits, so that a long check does not delay calls. */
  readonly #thread: ReturnType<typeof createThreadClient>

  constructor(context: AdminContext) {
    this.#context = context
    this.#thread = createThreadClient({ name: 'configuration', failure: editFailure, timeLimit, clock: context.clock })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#thread[Symbol.asyncDispose]()
  }

  async file(): Promise<ConfigFileView> {
    if (!this.#context.source) return { path: '', exists: false, editable: { ok: false, reason: notFromFile } }
    const { obstacle, ...file } = await (await this.#open()).file()
    return { ...file, editable: editableOf(obstacle) }
  }

  async content(): Promise<{ readonly values: Readonly<Record<string, unknown>>; hashAt(path: Path): string }> {
    if (!this.#context.source) return { values: {}, hashAt: () => '' }
    const { values, hashAt } = await (await this.#open()).content()
    return { values: asRecord(values), hashAt }
  }

  async propose(edit: ConfigEdit): Promise<EditSummary & Proposal> {
    const { env, ...own } = this.#source
    const { loaded, secrets } = this.#context.current()
    const { audit, stores } = loaded.config
    return this.#thread.request('propose', {
      // `process.env` cannot be copied to a thread.
      source: { ...own, env: { ...env } },
      edit,
      redacted: { secrets, keys: audit.redact },
      folder: stores.path,
      key: await this.#context.auditKey(),
    })
  }

  /** The configuration with an edit. Rejects if it would be invalid. */
  async loadedWith(edit: ConfigEdit): Promise<NonNullable<Proposal['loaded']>> {
    const { loaded, problems } = await this.propose(edit)
    if (loaded && problems.length === 0) return loaded
    throw wouldBeInvalid(problems)
  }

  async apply(caller: Caller, edit: ConfigEdit, hash: string | undefined): Promise<AppliedEdit> {
    const { current, audit } = this.#context
    const editor = await this.#open()
    const proposal = await this.propose(edit)
    requireConfirmed(edit, proposal)
    const { file, paths } = proposal
    const operation = edit.undo === undefined ? 'edit_config' : 'undo_config'
    const action = { operation, arguments: { file: file.path, paths } } as const
    const recorded = await auditOperation(audit, caller, action, () =>
      editor.apply(proposal, hash ?? proposal.hash, caller.principal).catch((thrown: Error) => {
        throw editFailure(thrown)
      }),
    )
    const before = current().servers
    const reload = await reloadAll(this.#context)
    // List the servers that were added: otherwise their tools stay unknown until a client lists them.
    const added = changedServers(proposal).filter((name) => !before.has(name))
    for (const name of added.slice(0, maxTestedServers)) void current().servers.get(name)?.server.refresh()
    return { edit: recordView(recorded), reload }
  }

  async history(): Promise<ConfigEditRecord[]> {
    return this.#context.source ? (await (await this.#open()).history()).map(recordView) : []
  }

  get #source(): ConfigSource {
    if (this.#context.source) return this.#context.source
    throw invalidArguments(notFromFile)
  }

  async #open(): Promise<ConfigEditor> {
    const { current, auditKey, clock } = this.#context
    return new ConfigEditor({
      source: this.#source,
      redactor: () => current().redactor,
      history: createEditHistory(current().loaded.config.stores.path),
      key: await auditKey(),
      now: () => clock.now(),
    })
  }
}

async function testEdit(
  context: AdminContext,
  edits: ConfigEdits,
  { caller, edit, signal }: { readonly caller: Caller; readonly edit: ConfigEdit; readonly signal: AbortSignal },
): Promise<readonly ServerTest[]> {
  const proposal = await edits.propose(edit)
  const names = changedServers(proposal).slice(0, maxTestedServers)
  const { loaded, problems } = proposal
  if (!loaded) throw wouldBeInvalid(problems)
  requireConfirmed(edit, proposal)
  const [twin] = proposal.present
  if (names.length === 0)
    throw invalidArguments(`This edit changes no server${twin ? `: it is in the configuration as ${twin.as}` : ''}.`)
  const action = { operation: 'test_server', arguments: { servers: names } } as const
  return auditOperation(context.audit, caller, action, () => testServers(context, loaded, names, signal))
}

async function definitionView(
  name: string,
  { current }: AdminContext,
  edits: ConfigEdits,
): Promise<ServerDefinitionView> {
  const { loaded, redactor } = current()
  const all = asRecord(redactConfig(loaded.config, redactor).mcpServers)
  const effective = Object.hasOwn(all, name) ? all[name] : undefined
  const { path, editable } = await edits.file()
  const inFile = await edits.content().catch(() => undefined)
  const value = valueAt(inFile?.values, ['mcpServers', name])
  // Merged values are written elsewhere, so a form could neither show nor change them.
  const isMerged = hasMergeKey(value)
  const definition = isRecord(value) && !isMerged ? value : null
  if (definition === null && effective === undefined) {
    throw new ToolwayError('SERVER_NOT_FOUND', `The configuration has no server ${quote(name)}.`)
  }
  const reason = isMerged
    ? `${name} uses a YAML merge key (<<) in ${path}. Change it with a text editor.`
    : `${name} is not defined in ${path}.`
  return {
    name,
    target: serverTarget(asRecord(definition ?? effective)),
    file: path,
    editable: definition === null && editable.ok ? { ok: false, reason } : editable,
    definition,
    yaml: definition === null ? '' : stringify(definition, { lineWidth: 0 }),
    hash: inFile?.hashAt(['mcpServers', name]) ?? '',
  }
}

const proposalView = (
  { file, notes, present, added, allowable, ...proposal }: EditSummary & Proposal,
  redact: (text: string) => string,
): EditProposal => ({
  file: file.path,
  hash: proposal.hash,
  editable: editableOf(file.obstacle),
  diff: proposal.diff.map(lineView),
  paths: [...proposal.paths],
  problems: proposal.problems.map(({ key, line, message }) => ({ key, line, message: redact(message) })),
  warnings: proposal.warnings.map(redact),
  servers: changedServers(proposal),
  references: proposal.references.map((one) => ({ ...one, target: redact(one.target) })),
  notes: notes.map(redact),
  ...{ present, added, allowable },
})

const foundViews = ({ client, path, content }: FoundFile, mask: SecretMask, known: ReadonlySet<string>) =>
  content.servers.map(({ name, definition, problems }): FoundServerView => {
    const shown = valueAt(mask.maskValues({ mcpServers: { [name]: definition } }), ['mcpServers', name])
    return {
      client: clientLabels[client],
      file: path,
      name,
      target: serverTarget(asRecord(shown)),
      present: known.has(name),
      problem: problems[0]?.message ?? null,
    }
  })

/** A conflict, in this thread or in the one that prepares edits. The audit log has it as an invalid request. */
const editFailure = (cause: Error): Error =>
  cause.name === 'EditConflict'
    ? new ToolwayError('INVALID_ARGUMENTS', cause.message, { auditReason: 'conflict' })
    : cause

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

/** The error for an edit that cannot be loaded. If the edit causes no new problem, the file has one already. */
function wouldBeInvalid([first]: readonly ConfigProblem[]): ToolwayError {
  if (first) return invalidArguments(`The configuration would be invalid: ${problemText(first)}.`)
  return invalidArguments('The configuration file is invalid without this edit, too: fix its problems first.')
}

/** The servers that a proposal adds or changes and that exist afterwards. */
function changedServers({ paths, loaded }: Pick<Proposal, 'paths' | 'loaded'>): string[] {
  const names = Object.keys(loaded?.config.mcpServers ?? {})
  return names.filter((name) =>
    paths.some((path) => path === 'mcpServers' || isWithin(path, keyPath(['mcpServers', name]))),
  )
}

/** Edits of the operator's own configuration file, and servers to add to it. */
export const configEditRoutes = (admin: ConfigEditService): readonly Route[] => [
  adminRoute('GET', 'config/file', 'The configuration file that edits change', {
    answer: schema.configFileView,
    run: () => admin.configFile(),
  }),
  adminRoute('POST', 'config/preview', 'What an edit of the configuration file would change; writes nothing', {
    body: schema.configEdit,
    answer: schema.editProposal,
    run: ({ body }) => admin.previewEdit(body),
  }),
  adminRoute('POST', 'config/apply', 'Edits the configuration file and reloads it in all processes', {
    body: schema.applyEdit,
    answer: schema.appliedEdit,
    run: ({ caller, body: { hash, ...body } }) => admin.applyEdit(caller, body, hash),
  }),
  adminRoute('GET', 'config/history', 'The latest edits of the configuration file, newest first', {
    answer: z.array(schema.configEditRecord),
    run: () => admin.configEdits(),
  }),
  adminRoute('POST', 'config/undo', 'Undoes an edit of the configuration file', {
    body: schema.undoRequest,
    answer: schema.appliedEdit,
    run: ({ caller, body: { id, hash } }) => admin.applyEdit(caller, { undo: id }, hash),
  }),
  adminRoute('GET', 'config/servers/found', "Servers in the files of the MCP clients on the gateway's machine", {
    answer: z.array(schema.foundServer),
    run: () => admin.foundServers(),
  }),
  adminRoute(
    'POST',
    'config/servers/test',
    'Starts the servers that an edit adds or changes, and says what they offer',
    {
      body: schema.configEdit,
      answer: z.array(schema.serverTest),
      run: ({ caller, body, signal }) => admin.testServers(caller, body, signal),
    },
  ),
  adminRoute('GET', 'config/servers/form', 'What a form for a server needs: its JSON schema', {
    answer: schema.serverForm,
    run: () => admin.serverForm(),
  }),
  adminRoute('GET', 'config/registry', 'Servers in the MCP registry (registry.url) that match a text', {
    query: schema.registryQuery,
    answer: z.array(schema.registryServer),
    run: ({ query, signal }) => admin.searchRegistry(query.search, signal),
  }),
  adminRoute('GET', 'servers/{name}/definition', 'A server as the configuration file defines it', {
    answer: schema.serverDefinitionView,
    run: ({ target }) => admin.serverDefinition(target),
  }),
]
