import type { ZodType } from 'zod'
import { serverAliases, serverExtras } from '../../src/config/import/aliases.ts'
import { configSchema } from '../../src/config/schema.ts'
import { type Form, type Key, type KeyPath, keysAt } from './keys.ts'
import { unwrap } from './type-in-words.ts'

const introduction = `<!-- Generated from src/config/schema by \`npm run generate\`. -->

# Configuration reference

Every key with its type, default and meaning. All sections are optional; a *required* key must be set if its section is
used. [Configuration](configuration.md) describes file locations, merging and variables;
[toolway.example.yaml](../toolway.example.yaml) shows every section in one file.

- Keys are relative to their section: \`NAME.restarts.max\` below \`mcpServers\` is \`mcpServers.NAME.restarts.max\`.
  \`NAME\` is a name of your choice; \`[]\` stands for every item of a list.
- A duration is \`500ms\`, \`30s\`, \`5m\`, \`1h\`, \`7d\` or \`0\`; a size is \`512B\`, \`64KiB\`, \`4MiB\` or \`1GiB\`. The unit is
  required, except for the duration \`0\`.
- Numbers and booleans may be written as text, so that a variable can set them: \`port: \${PORT:-4322}\`.
- In a pattern, \`*\` matches any text. Tools are written \`server.tool\`.`

/** The page, in Markdown. */
export function configurationReference(): string {
  const members = Object.entries(unwrap(configSchema).definition.shape ?? {})
  const sections = members.filter(([, schema]) => isSection(schema))
  const single = members.filter(([, schema]) => !isSection(schema))
  const contents = sections.map(([name, schema]) => [
    `[\`${name}\`](#${name.toLowerCase()})`,
    unwrap(schema).description,
  ])
  return `${[
    introduction,
    table(['section', 'description'], contents),
    'Keys outside sections:',
    keyTable(single.flatMap(([key, schema]) => keysAt(schema, [key]).keys)),
    ...sections.flatMap(([name, schema]) => section(name, schema)),
  ].join('\n\n')}\n`
}

function isSection(schema: ZodType): boolean {
  const { shape, valueType } = unwrap(schema).definition
  return shape !== undefined || valueType !== undefined
}

function section(name: string, schema: ZodType): string[] {
  const { keys, forms } = keysAt(schema, [name])
  const [about, ...rest] = keys as [Key, ...Key[]]
  const ofServers = name === 'mcpServers'
  const all = ofServers ? [...rest, ...extraKeys] : rest
  return [
    `## ${name}`,
    about.meaning,
    ...(all.length > 0 ? [keyTable(all, 1)] : []),
    ...forms.flatMap(formTable),
    ...(ofServers ? otherSpellings : []),
  ]
}

const formTable = ({ path, decidedBy, value, meaning, keys }: Form): string[] => [
  `### \`${written(path)}\` with \`${decidedBy}: ${value}\``,
  meaning,
  ...(keys.length > 0 ? [keyTable(keys, 1)] : []),
]

/** Keys of a server that are processed before schema validation. */
const extraKeys: readonly Key[] = Object.entries(serverExtras).map(([key, meaning]) => ({
  path: ['mcpServers', 'NAME', key],
  type: 'the path of a file',
  required: false,
  meaning,
}))

const spellings = Object.entries(serverAliases).map(([key, meaning]) => [`\`NAME.${key}\``, meaning])
const otherSpellings = [
  '### Other spellings',
  'Entries from other programs work unchanged.',
  table(['key', 'meaning'], spellings),
]

/** `known` is the number of path parts that the heading already shows. */
function keyTable(keys: readonly Key[], known = 0): string {
  const row = (key: Key) => [`\`${written(key.path.slice(known))}\``, key.type, initialOf(key), key.meaning]
  return table(['key', 'type', 'default', 'meaning'], keys.map(row))
}

const written = (path: KeyPath): string => path.join('.').replaceAll('.[]', '[]')

function initialOf({ initial, required }: Key): string {
  if (required) return '*required*'
  return initial === undefined ? '' : `\`${inYaml(initial)}\``
}

/** As a single line of YAML. */
function inYaml(value: unknown): string {
  if (typeof value === 'string') return /^[\w./]+$/.test(value) ? value : JSON.stringify(value)
  return Array.isArray(value) ? `[${value.map(inYaml).join(', ')}]` : JSON.stringify(value)
}

function table(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return [line(titles), line(titles.map(() => '---')), ...rows.map(line)].join('\n')
}
