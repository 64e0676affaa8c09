import { type BranchNode, branch, type ConfigTree, find, type LeafNode, mapLeaves } from '../tree.ts'
import { folderOf, workspaceOf } from './client-kind.ts'
import { clientServers } from './client-server.ts'
import { mapText, membersOf, type TranslationReport } from './shape.ts'
import { editorVariables, inputVariable } from './variables.ts'

/** Recognizes VS Code's `mcp.json`: `{"inputs": […], "servers": {…}}`. */
export const isVscode = ({ members }: BranchNode): boolean =>
  members.get('servers')?.value.kind === 'branch' && !members.has('mcpServers')

/** Sections of files that have `mcp` or `mcp.servers` too, but are not VS Code's. */
const notSettings = ['mcp_client', 'tool_forwarding', 'mcpServers', 'agents', 'policy', 'auth', 'limits']

/** Recognizes VS Code's older `settings.json`, with the content of `mcp.json` under `mcp`. */
export const isVscodeSettings = (tree: BranchNode): boolean =>
  settingsOf(tree) !== undefined && !notSettings.some((key) => tree.members.has(key))

/** The section `mcp` of VS Code's `settings.json`, whose keys can also be written as `mcp.servers`. */
function settingsOf({ at, members }: BranchNode): BranchNode | undefined {
  const dotted = ['servers', 'inputs'].flatMap((key) => {
    const member = members.get(`mcp.${key}`)
    return member ? [[key, member] as const] : []
  })
  const section = members.get('mcp')?.value ?? branch(at, dotted)
  return section.kind === 'branch' && find(section, ['servers'])?.kind === 'branch' ? section : undefined
}

/** Converts VS Code's file. Inputs, which VS Code asks the user for, become variables. */
export function translateVscode(file: BranchNode, report: TranslationReport, home: string): BranchNode {
  const document = settingsOf(file) ?? file
  membersOf(document, ['servers', 'inputs', '$schema'], report)
  const tree = mapLeaves(document, inputs(find(document, ['inputs']), report)) as BranchNode
  const folder = folderOf(tree.at.file.path)
  const format = {
    label: 'the editor',
    respell: editorVariables(workspaceOf(tree.at.file.path, home)),
    folder,
    tolerant: true,
  }
  const servers = tree.members.get('servers')
  return clientServers({ tree, servers, format, called: "an editor's mcp.json", known: ['inputs'] }, report)
}

/** Replaces `${input:id}` with `${INPUT_ID}`, or `${INPUT_ID:-default}` if the input has a default. */
function inputs(section: ConfigTree | undefined, report: TranslationReport): (part: LeafNode) => LeafNode {
  const defaults = new Map<string, string>()
  for (const input of section?.kind === 'list' ? section.items : []) {
    const [id, fallback] = ['id', 'default'].map((key) => find(input, [key]))
    if (id?.kind === 'leaf' && fallback?.kind === 'leaf' && typeof fallback.value === 'string') {
      defaults.set(String(id.value), fallback.value)
    }
  }
  const said = new Set<string>()
  const variable = (id: string): string => {
    const name = inputVariable(id)
    const note = `the editor's prompt ${id} is read from the variable ${name}`
    if (!said.has(name)) report.notes.push(note)
    said.add(name)
    const fallback = defaults.get(id)
    return fallback === undefined || /[{}]/.test(fallback) ? `\${${name}}` : `\${${name}:-${fallback}}`
  }
  return (part) => mapText(part, (text) => text.replace(/(?<!\$)\$\{input:([^}]+)\}/g, (_, id: string) => variable(id)))
}
