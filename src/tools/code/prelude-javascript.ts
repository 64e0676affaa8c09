import { reserved } from './identifiers.ts'

/**
 * What a program finds in its scope. It is for the program's comfort only: the host decides everything about a call
 * anew, so it does not matter what a program does to any of this.
 */
export const javascriptPrelude = `(() => {
  const ask = host
  class ToolError extends Error {
    constructor(server, tool) {
      super()
      this.name = 'ToolError'
      this.server = server
      this.tool = tool
    }
  }
  const call = (server, tool, args = {}) => {
    // Made now, so that its stack shows the line of the call and not of the answer.
    const failure = new ToolError(server, tool)
    return ask('call', JSON.stringify({ server, tool, args })).then(JSON.parse, (refusal) => {
      failure.code = refusal.code
      failure.message = refusal.message
      throw failure
    })
  }
  const reserved = new Set(${JSON.stringify([...reserved])})
  const named = (target, get) =>
    new Proxy(target, {
      get: (_, key) => (typeof key === 'symbol' || reserved.has(key) ? undefined : get(key)),
    })
  const tools = named({}, (server) =>
    named((args) => call(undefined, server, args), (tool) => (args) => call(server, tool, args)),
  )
  const search = async (query, options) => (await call('toolway', 'search_tools', { query, ...options })).matches
  const describe = async (...names) => {
    const { declarations, unknown = [] } = await call('toolway', 'describe_tools', { names: names.flat() })
    return [declarations, ...unknown.map(({ message }) => '// ' + message)].filter(Boolean).join('\\n')
  }
  Object.assign(globalThis, { tools, search, describe, ToolError })
})()
`
