import { createRedactor } from '../../audit/redact/redactor.ts'
import { adaptServer, discover, type FoundFile, type FoundServer, planImport } from '../../clients/import-plan.ts'
import { valueAt } from '../../config/edit/edit-text.ts'
import { readServers, type ServerDefinition } from '../../config/import/read-servers.ts'
import type { ConfigSource } from '../../config/locate.ts'
import { invalidArguments } from '../../core/errors.ts'
import { homeOf } from '../../core/home.ts'
import { asRecord } from '../../lib/is-record.ts'
import { quote } from '../../lib/message-text.ts'
import { parentName } from '../../policy/agents.ts'
import { Rules } from '../../policy/rules.ts'
import type { ConfigEdit, EditProposal } from '../contract.ts'
import { type ConfigChange, ConfigEditor, type Proposal } from './config-editor.ts'
import { type Draft, openEditedFile } from './config-file.ts'
import { createEditHistory } from './edit-history.ts'
import { readPasted } from './pasted-servers.ts'
import { commentOn, disabledReason, missingIn, resolveIn } from './prepare-import.ts'

export interface ProposalRequest {
  readonly source: ConfigSource
  readonly edit: ConfigEdit
  readonly redacted: { readonly secrets: readonly string[]; readonly keys: readonly string[] }
  readonly folder: string
  readonly key: string
}

export type EditSummary = Pick<EditProposal, 'notes' | 'present' | 'added' | 'allowable'>

/** What an edit of the admin API would change, whichever way it says what to add, and who may use what it adds. */
export async function proposeEdit(request: ProposalRequest): Promise<Proposal & EditSummary> {
  const { source, key, folder, edit } = request
  const redactor = createRedactor(request.redacted)
  const history = createEditHistory(folder)
  const editor = new ConfigEditor({ source, redactor: () => redactor, history, key, now: () => 0 })
  const { add, import: choices, changes, undo = '', copies, allow = [] } = edit
  const from = { ...source, copies }
  const added = add ? await additionOf(add, from) : choices && (await importOf(choices, from))
  const { notes = [], present = [], changes: wanted = changes } = added ?? {}
  if (!wanted) {
    const proposal = await editor.propose({ undo })
    return { ...proposal, notes, present, added: [], allowable: [] }
  }
  const { values } = await editor.content()
  const isNew = ({ path, value, yaml }: ConfigChange) =>
    path[0] === 'mcpServers' && path.length === 2 && (value ?? yaml) !== undefined && !valueAt(values, path)
  const names = wanted.filter(isNew).map(({ path }) => String(path[1]))
  const allowing = allow.map((agent) => allowingChange(agent, names, values))
  const proposal = await editor.propose({ changes: [...wanted, ...allowing] })
  return {
    ...{ ...proposal, notes, present },
    added: names.map((name) => ({ name, agents: agentsAllowed(proposal, name) })),
    allowable: names.length === 0 ? [] : Object.keys(asRecord(valueAt(values, ['agents']))).filter(isTop),
  }
}

/** Whether an agent inherits nothing: rules of its own would replace those of its parent. */
const isTop = (agent: string): boolean => parentName(agent) === undefined

/** The change that allows servers for an agent. `values` is the content of the file. */
export function allowingChange(agent: string, names: readonly string[], values: unknown): ConfigChange {
  const path = ['agents', agent, 'allow', 'servers']
  const allowed = valueAt(values, path) ?? []
  if (valueAt(values, ['agents', agent]) !== undefined && Array.isArray(allowed) && isTop(agent))
    return { path, value: [...allowed, ...names] }
  throw invalidArguments(`Servers cannot be allowed for the agent ${quote(agent)} here: edit its rules instead.`)
}

/** The agents that may use a server, whatever it offers; null if there are no rules, or the configuration is invalid. */
export function agentsAllowed({ loaded }: Pick<Proposal | Draft, 'loaded'>, server: string): string[] | null {
  if (!loaded) return null
  const { agents, policy, mcpServers } = loaded.config
  const rules = new Rules({ agents, policy, servers: Object.keys(mcpServers) })
  if (rules.agents.size === 0) return null
  return [...rules.agents].filter((agent) => !rules.closed({ agent, authenticated: true }, server))
}

/** Where servers are added, and the names of those that are added even if they are there already. */
type AddSource = ConfigSource & Pick<ConfigEdit, 'copies'>

type Additions = Pick<EditProposal, 'notes' | 'present'> & { readonly changes: readonly ConfigChange[] }

/** The changes that add pasted servers; those in `oauth` with OAuth. */
export async function additionOf(
  { oauth = [], ...pasted }: NonNullable<ConfigEdit['add']>,
  source: AddSource,
): Promise<Additions> {
  const { path, known } = await targetFile(source)
  if (pasted.name !== undefined && known.has(pasted.name)) {
    throw invalidArguments(`There is already a server named ${pasted.name}.`)
  }
  const found = await readPasted(pasted, source, path)
  const added = await additions(found.map(renameIfKnown(known)), known, source, false)
  const auth = { type: 'oauth' }
  const changes = added.changes.map((change) =>
    oauth.includes(String(change.path[1])) ? { ...change, value: { ...asRecord(change.value), auth } } : change,
  )
  return { ...added, changes }
}

export async function importOf(choices: NonNullable<ConfigEdit['import']>, source: AddSource): Promise<Additions> {
  const { path, known } = await targetFile(source)
  const files = await readClientFiles(source)
  const found = choices.map(({ file, name }): FoundServer => {
    const from = files.find((one) => one.path === file)
    const server = from?.content.servers.find((one) => one.name === name)
    if (!from || !server)
      throw invalidArguments(`There is no server ${JSON.stringify(name)} in ${JSON.stringify(file)}.`)
    const [problem] = server.problems
    if (problem) throw invalidArguments(`${name} cannot be imported: ${problem.message}.`)
    return adaptServer(server, from, path)
  })
  return additions(found, known, source, true)
}

export const readClientFiles = ({ env, cwd }: ConfigSource): Promise<FoundFile[]> =>
  discover({ env, cwd, platform: process.platform })

async function targetFile(source: ConfigSource) {
  const { path, before } = await openEditedFile(source)
  const servers = before.bytes ? (await readServers(path, homeOf(source.env))).servers : []
  return { path, known: new Map(servers.map(({ name, definition }) => [name, definition])) }
}

const renameIfKnown =
  (known: ReadonlyMap<string, ServerDefinition>) =>
  (server: FoundServer): FoundServer => {
    let name = server.name
    for (let number = 2; known.has(name); number++) name = `${server.name.slice(0, 60)}-${number}`
    return { ...server, name }
  }

async function additions(
  found: readonly FoundServer[],
  known: ReadonlyMap<string, ServerDefinition>,
  { env, copies }: AddSource,
  isImport: boolean,
): Promise<Additions> {
  // Secrets stay inline here; the editor moves them to private files.
  const keep = async (secret: string) => secret
  const plan = await planImport(found, {
    ...{ known, copies },
    find: () => [],
    keep,
    missing: missingIn(env),
    resolve: resolveIn(env),
  })
  const changes = plan.added.map(
    (server): ConfigChange => ({
      path: ['mcpServers', server.name],
      value: server.definition,
      comment: commentOn(server, isImport),
    }),
  )
  const waiting = plan.added.filter((server) => server.waiting.length > 0)
  return {
    changes,
    present: plan.present,
    notes: [...plan.notes, ...waiting.map((server) => `${server.name} is ${disabledReason(server.waiting)}.`)],
  }
}
