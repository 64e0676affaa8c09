import * as z from 'zod'
import { reloadEvent, type ViewOf, view } from '../overview/schema.ts'

const settingKey = z.string().refine((name) => name !== '__proto__', 'not __proto__, which is not a setting')

const settingPath = z
  .array(z.union([settingKey, z.int().min(0)]))
  .min(1)
  .max(32)

const fileHash = z.string().max(100)

const configChange = view('ConfigChange', 'A change at a path. Without value, yaml and rename, it removes.', {
  path: settingPath.describe('Keys and list indexes, such as ["mcpServers", "files"].'),
  value: z.unknown().optional(),
  yaml: z
    .string()
    .max(1024 * 1024)
    .optional()
    .describe('The value as YAML, instead of `value`.'),
  rename: settingKey.max(256).optional().describe('The new name of the entry at the path.'),
  isNew: z.boolean().optional().describe('Whether to refuse the change if there is something at the path.'),
  was: fileHash
    .optional()
    .describe('The hash of what was at the path: if that has changed since, the edit is a conflict.'),
})

const serverNames = z.array(z.string().max(256)).max(200)

const editKinds = {
  changes: z.array(configChange).min(1).max(200).optional(),
  undo: z.string().max(100).optional().describe('The id of an edit in the history.'),
  add: z
    .strictObject({
      input: z.string().max(256 * 1024),
      name: z.string().max(256).optional(),
      oauth: serverNames.optional().describe('Those of them that use OAuth.'),
    })
    .optional()
    .describe('Servers to add: a command line, a URL, or the configuration of any MCP client.'),
  import: z
    .array(z.strictObject({ file: z.string().max(4096), name: z.string().max(256) }))
    .min(1)
    .max(200)
    .optional()
    .describe('Servers to add from the files of MCP clients, as GET config/servers/found lists them.'),
}

/** What every edit may contain besides the edit itself. */
const conditions = {
  references: z
    .array(z.string().max(1024 * 1024))
    .max(10_000)
    .optional()
    .describe('References of its preview that a person has confirmed. With others, it is neither tested nor applied.'),
  copies: serverNames.optional().describe('Servers to add although they are in the configuration under other names.'),
  allow: serverNames.optional().describe('Agents that are allowed to use the servers that it adds.'),
}

const hasOneKind = (edit: Record<string, unknown>): boolean =>
  Object.keys(editKinds).filter((key) => edit[key] !== undefined).length === 1
const oneKindMessage = 'give exactly one of changes, undo, add, import'

export const configEdit = view(
  'ConfigEdit',
  'An edit of the configuration file. In values, placeholders such as <secret 1f3a9c0d> stand for secrets in the file.',
  { ...editKinds, ...conditions },
).refine(hasOneKind, oneKindMessage)
export type ConfigEdit = ViewOf<typeof configEdit>

const previewHash = fileHash.describe('The hash that the preview of this edit returned.')

export const applyEdit = view('ApplyEdit', 'An edit to apply to the file that was reviewed.', {
  ...editKinds,
  ...conditions,
  hash: previewHash,
}).refine(hasOneKind, oneKindMessage)
export const undoRequest = view('UndoEdit', 'An edit to undo.', {
  id: z.string().max(100),
  hash: previewHash.optional(),
})

export const editable = z
  .strictObject({ ok: z.boolean(), reason: z.string().optional() })
  .describe('Whether the file can be edited here and, if not, why.')

export const configFileView = view('ConfigFileView', 'The configuration file that edits change.', {
  path: z.string(),
  exists: z.boolean(),
  editable,
})
export type ConfigFileView = ViewOf<typeof configFileView>

const diffLine = z.strictObject({ mark: z.enum([' ', '+', '-', '…']), text: z.string() })
export type DiffLine = ViewOf<typeof diffLine>
const diff = z.array(diffLine).describe('The changed lines with some lines around them, without secrets.')

export const editProposal = view('EditProposal', 'What an edit would change.', {
  file: z.string(),
  hash: fileHash.describe('Identifies what was reviewed: the old and the new content, and new secrets.'),
  editable,
  diff,
  paths: z.array(z.string()),
  problems: z
    .array(z.strictObject({ key: z.string(), line: z.int().optional(), message: z.string() }))
    .describe('Problems that the edit would cause; with any, it is not applied.'),
  warnings: z.array(z.string()),
  servers: z.array(z.string()).describe('The servers that it adds or changes.'),
  references: z
    .array(z.strictObject({ key: z.string(), target: z.string(), reference: z.string() }))
    .describe('References to variables, files and commands that it adds, and which entry and target get the values.'),
  notes: z.array(z.string()),
  present: z
    .array(z.strictObject({ name: z.string(), as: z.string() }))
    .describe(
      'Servers that are not added, because they are in the configuration under these names, unless in `copies`.',
    ),
  added: z
    .array(z.strictObject({ name: z.string(), agents: z.array(z.string()).nullable() }))
    .describe('The servers that it adds, with the agents that may use them; null if there are no rules for agents.'),
  allowable: z.array(z.string()).describe('Agents that `allow` can name without changing what else they may use.'),
})
export type EditProposal = ViewOf<typeof editProposal>

export const configEditRecord = view('ConfigEditRecord', 'An edit in the history.', {
  id: z.string(),
  at: z.number(),
  by: z.string(),
  file: z.string(),
  paths: z.array(z.string()),
  undoes: z.string().nullable().describe('The id of the edit that it has undone.'),
  diff,
})
export type ConfigEditRecord = ViewOf<typeof configEditRecord>

export const appliedEdit = view('AppliedEdit', 'An edit that was written, and the reload that followed.', {
  edit: configEditRecord,
  reload: reloadEvent,
})
export type AppliedEdit = ViewOf<typeof appliedEdit>

export const serverTest = view('ServerTest', 'The result of starting a server once.', {
  name: z.string(),
  ok: z.boolean(),
  error: z.string().nullable(),
  needsSignIn: z.boolean().describe('Whether it requires an OAuth sign-in, which is possible once it is saved.'),
  lacksOAuth: z.boolean().describe('Whether it requires a sign-in, and `auth: { type: oauth }` is missing.'),
  transport: z.string(),
  protocolVersion: z.string().nullable(),
  reports: z.string().nullable().describe('The name and version that the server reports.'),
  startMs: z.number().nullable(),
  tools: z.array(z.strictObject({ name: z.string(), description: z.string(), tokens: z.int().min(0) })),
  tokens: z.int().min(0).describe('Context tokens that all its tools use.'),
  prompts: z.array(z.string()),
  resources: z.array(z.string()),
  findings: z
    .array(
      z.strictObject({
        item: z.string(),
        kind: z.string(),
        severity: z.enum(['high', 'warn', 'info']),
        where: z.string(),
        excerpt: z.string(),
      }),
    )
    .describe('Suspicious content in its definitions.'),
  remarks: z.array(z.string()),
  stderr: z.array(z.string()),
})
export type ServerTest = ViewOf<typeof serverTest>

export const foundServer = view('FoundServerView', "A server in an MCP client's file.", {
  client: z.string(),
  file: z.string(),
  name: z.string(),
  target: z.string().describe('Its command line or URL, without secrets.'),
  present: z.boolean().describe('Whether a server with this name is in the configuration.'),
  problem: z.string().nullable().describe('Why it cannot be imported.'),
})
export type FoundServerView = ViewOf<typeof foundServer>

export const serverForm = view('ServerForm', 'What a form for a server needs.', {
  schema: z.record(z.string(), z.unknown()).describe('The JSON schema of a server in the configuration.'),
  common: z.array(z.string()).describe('The settings that most servers need, in the order of a form.'),
  registry: z.string().nullable().describe('The MCP registry that can be searched; null if none is configured.'),
})
export type ServerForm = ViewOf<typeof serverForm>

export const registryQuery = z.strictObject({ search: z.string().min(1).max(200) })

export const registryServer = view('RegistryServerView', 'A server in the MCP registry.', {
  name: z.string(),
  description: z.string(),
  version: z.string(),
  choices: z
    .array(
      z.strictObject({
        label: z.string().describe('What is run or reached, such as a package.'),
        name: z.string().describe('A name for the server in the configuration.'),
        definition: z.record(z.string(), z.unknown()),
        missing: z.array(z.string()).describe('What a person has to fill in.'),
      }),
    )
    .describe('The ways to run or reach it that Toolway supports.'),
})
export type RegistryServerView = ViewOf<typeof registryServer>

export const serverDefinitionView = view('ServerDefinitionView', 'A server as the configuration file defines it.', {
  name: z.string(),
  target: z.string().describe('Its command line or URL, without secrets.'),
  file: z.string(),
  editable,
  definition: z
    .record(z.string(), z.unknown())
    .nullable()
    .describe('With placeholders for secrets; null if it is not in the file.'),
  yaml: z.string().describe('The same as YAML.'),
  hash: fileHash.describe('Identifies the definition in the file.'),
})
export type ServerDefinitionView = ViewOf<typeof serverDefinitionView>
