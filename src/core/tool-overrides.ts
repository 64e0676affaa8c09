/** The setting `mcpServers.*.tools`. Its other members are overrides, which `toolOverrides` reads. */
export interface ToolSelection {
  readonly include: readonly string[]
  readonly exclude: readonly string[]
}

/** What the operator changes about a tool (V15). */
export interface ToolOverride {
  readonly name?: string | undefined
  readonly title?: string | undefined
  readonly description?: string | undefined
  readonly hidden: boolean
  readonly hide: readonly string[]
  readonly fixed: Readonly<Record<string, unknown>>
  readonly defaults: Readonly<Record<string, unknown>>
  readonly annotations: { readonly readOnlyHint?: boolean | undefined; readonly idempotentHint?: boolean | undefined }
  readonly tags: readonly string[]
}

/** The overrides of a server's tools, by the names that the server gives them. */
export const toolOverrides = ({ include: _, exclude: __, ...overrides }: ToolSelection): Map<string, ToolOverride> =>
  new Map(Object.entries(overrides as Record<string, ToolOverride>).map(([key, one]) => [key.replace(/^=/, ''), one]))

/** The key of a tool's override. */
export const overrideKey = (tool: string): string => (/^(?:include|exclude)$|^=/.test(tool) ? `=${tool}` : tool)

/** The path of a tool's override in the configuration. */
export const overridePath = (server: string, tool: string): string => `mcpServers.${server}.tools.${overrideKey(tool)}`

/** The tools that an operator's annotation marks as reads. */
export const annotatedReads = (selection: ToolSelection): string[] =>
  [...toolOverrides(selection)].flatMap(([tool, { annotations }]) => (annotations.readOnlyHint ? [tool] : []))
