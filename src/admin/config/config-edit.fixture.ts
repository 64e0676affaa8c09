import type { ConfigEditRecord, DiffLine, EditProposal } from '../contract.ts'
import type { ConfigEditService } from './config-edit.ts'

const file = '/home/ada/projects/app/toolway.yaml'

const diff: readonly DiffLine[] = [
  { mark: ' ', text: 'mcpServers:' },
  { mark: '-', text: '  old: { command: old }' },
  { mark: '+', text: '  memory:' },
  { mark: '+', text: '    command: npx' },
  { mark: '+', text: '    env: { API_TOKEN: "${file:~/.config/toolway/secrets/memory.API_TOKEN}" }' },
  { mark: '…', text: '' },
]

const record: ConfigEditRecord = {
  ...{ id: '00001700000000000-0a1b2c3d', at: 1_700_000_000_000, by: 'token', file, undoes: null, diff },
  paths: ['mcpServers.memory', 'mcpServers.old'],
}

const proposal: EditProposal = {
  ...{ file, hash: 'h1', editable: { ok: true }, diff, paths: [...record.paths] },
  ...{ problems: [], warnings: [], servers: ['memory'], references: [], notes: [] },
  ...{ present: [], added: [{ name: 'memory', agents: [] }], allowable: ['researcher', 'ci'] },
}

/** Edits in memory. The input `bad` has a problem, the hash `old` is a conflict, and `${` is a reference. */
export const createTestConfigEditing = (
  note: (what: string, given: unknown) => void = () => {},
): ConfigEditService => ({
  configFile: async () => ({
    ...{ path: file, exists: true, editable: { ok: true } },
  }),
  async previewEdit(edit) {
    note('preview', edit)
    const problem = { key: 'mcpServers.memory.comand', line: 3, message: 'unknown key; did you mean command?' }
    const references = [{ key: 'mcpServers.memory', target: 'https://x.example.com', reference: '${TOKEN}' }]
    const added = [{ name: 'memory', agents: edit.allow ?? [] }]
    if (edit.add?.input === 'npx twin')
      return { ...proposal, ...(edit.copies ? { added } : { present: [{ name: 'twin', as: 'memory' }], diff: [] }) }
    if (edit.add?.input.includes('${')) return { ...proposal, references }
    return edit.add?.input === 'bad' ? { ...proposal, problems: [problem] } : { ...proposal, added }
  },
  async applyEdit(_, edit, hash) {
    note('apply', { edit, hash })
    return { edit: record, reload: { at: record.at, ok: true, error: null, changes: ['server memory added'] } }
  },
  configEdits: async () => [record],
  async testServers(_, edit) {
    note('test', edit)
    const tool = { name: 'remember', description: 'Stores a fact', tokens: 120 }
    return [
      {
        ...{
          name: 'memory',
          ok: true,
          error: null,
          needsSignIn: false,
          lacksOAuth: false,
          transport: 'stdio',
          reports: 'memory 1.0',
        },
        ...{ protocolVersion: '2025-06-18', startMs: 412, tools: [tool], tokens: 120, prompts: ['recall'] },
        ...{ resources: ['memory://facts'], remarks: [], stderr: ['Listening on stdio'] },
        findings: [
          {
            item: 'remember',
            kind: 'instruction',
            severity: 'warn',
            where: 'description',
            excerpt: 'Always call this',
          },
        ],
      },
    ]
  },
  foundServers: async () => [
    {
      ...{ client: 'Cursor', file: '/home/ada/.cursor/mcp.json', name: 'git', target: 'uvx mcp-server-git' },
      ...{ present: false, problem: null },
    },
  ],
  serverForm: () => ({
    schema: {
      type: 'object',
      properties: {
        command: { type: 'string', description: 'Program to start.' },
        args: { type: 'array', items: { type: 'string' } },
        env: { type: 'object', additionalProperties: { type: 'string' } },
        url: { type: 'string' },
        priority: { type: 'number' },
      },
    },
    common: ['command', 'args', 'env', 'url'],
    registry: 'https://registry.example.com',
  }),
  searchRegistry: async (text) => [
    {
      ...{ name: `io.example/${text}`, description: 'Remembers facts', version: '1.0.0' },
      choices: [
        {
          ...{ label: 'npm @example/memory 1.0.0', name: 'memory' },
          definition: { command: 'npx', args: ['-y', '@example/memory@1.0.0'], env: { API_TOKEN: '' } },
          missing: ['API_TOKEN: from your account'],
        },
      ],
    },
  ],
  serverDefinition: async (name) => ({
    ...{ name, target: 'npx -y @modelcontextprotocol/server-filesystem ./sandbox', file, editable: { ok: true } },
    definition: { command: 'npx', args: ['-y', '@modelcontextprotocol/server-filesystem', './sandbox'] },
    yaml: 'command: npx\nargs:\n  - -y\n  - "@modelcontextprotocol/server-filesystem"\n  - ./sandbox\n',
    hash: 'd1',
  }),
})
