import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { toolwayInFrontOf } from './toolway.ts'

/** What the suite wants of a client. */
export interface Task {
  readonly scenario: string
  /** The suite's server. */
  readonly url: string
  /** The revision that the client is to speak. */
  readonly version: string
  /** What else a scenario tells its client, as JSON. */
  readonly context?: string
}

type Params = Record<string, unknown>
type Steps = (client: Client, context: Params) => Promise<unknown>

const call = (client: Client, name: string, args: Params = {}) => client.callTool({ name, arguments: args })

/** Loads a skill as a model does, and then a file of it, if the skill could be loaded. */
const loadSkill: Steps = async (client) => {
  const { content } = await call(client, 'find_skill')
  const [found] = content
  const { skills } = JSON.parse(found?.type === 'text' ? found.text : '{}') as { skills: { skill: string }[] }
  for (const { skill } of skills) {
    const loaded = await call(client, 'get_skill', { skill })
    if (!loaded.isError) await call(client, 'get_skill', { skill, file: 'references/FORMS.md' })
  }
}

/** The steps of those scenarios for which it is not enough to list the tools. */
const steps: Record<string, Steps> = {
  tools_call: (client) => call(client, 'add_numbers', { a: 5, b: 3 }),
  'elicitation-sep1034-client-defaults': (client) => call(client, 'test_client_elicitation_defaults'),
  'sse-retry': (client) => call(client, 'test_reconnection'),
  async 'sep-2322-client-request-state'(client) {
    for (const name of ['echo_state', 'unrelated', 'no_state', 'no_result_type'])
      await call(client, `test_mrtr_${name}`)
  },
  async 'http-standard-headers'(client) {
    await client.listTools()
    await call(client, 'test_headers')
    const { resources } = await client.listResources()
    for (const { uri } of resources) await client.readResource({ uri })
    const { prompts } = await client.listPrompts()
    for (const { name } of prompts) await client.getPrompt({ name })
  },
  async 'http-custom-headers'(client, { toolCalls }) {
    await client.listTools()
    for (const { name, arguments: args } of toolCalls as { name: string; arguments: Params }[])
      await call(client, name, args)
  },
  async 'http-invalid-tool-headers'(client) {
    const { tools } = await client.listTools()
    for (const { name } of tools) await call(client, name, { region: 'eu', value: 'x' })
  },
  'sep-2640-client-no-prefetch': (client) => call(client, 'find_skill'),
  'sep-2640-client-verify-digest': loadSkill,
  'sep-2640-client-verify-size': loadSkill,
  'sep-2640-client-verify-frontmatter': loadSkill,
  async 'json-schema-2020-12-preservation'(client) {
    const { tools } = await client.listTools()
    const focal = tools.find(({ name }) => name !== 'json_schema_echo')
    await call(client, 'json_schema_echo', { schema: focal?.inputSchema })
  },
}

/** Puts a Toolway in front of the suite's server and takes the steps of a scenario through it with an official client. */
export async function takeSteps({ scenario, url, version, context = '{}' }: Task): Promise<void> {
  await using open = new AsyncDisposableStack()
  const toolway = await toolwayInFrontOf(url, open)
  const client = new Client(
    { name: 'conformance-driver', version: '1.0.0' },
    {
      capabilities: { elicitation: { form: { applyDefaults: true } }, sampling: {}, roots: {} },
      versionNegotiation: { mode: version >= '2026-07-28' ? { pin: version } : 'legacy' },
    },
  )
  // A form with defaults is sent back empty, so that it is the client's part to fill them in.
  const content: Record<string, boolean> = scenario.startsWith('elicitation') ? {} : { confirmed: true }
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content }))
  await client.connect(new StreamableHTTPClientTransport(new URL(toolway)))
  open.defer(() => client.close())
  await (steps[scenario] ?? (() => client.listTools()))(client, JSON.parse(context))
}
