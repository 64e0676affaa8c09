import { reservedProperties } from './tool-names.ts'

/** Defines the globals of JavaScript programs. Changing them gains nothing, because the host checks every call. */
export const javascriptPrelude = `(() => {
  const ask = host
  const { stringify } = JSON
  class ToolError extends Error {
    constructor(server, tool) {
      super()
      this.name = 'ToolError'
      this.server = server
      this.tool = tool
    }
  }
  const sendable = (key, value) => {
    const type = typeof value
    if (type !== 'bigint' && type !== 'function' && type !== 'symbol') return value
    throw new TypeError('"' + key + '" is a ' + type)
  }
  const call = async (server, tool, args = {}) => {
    // Create the error now, so that its stack shows the line of the call and not of the answer.
    const failure = new ToolError(server, tool)
    const fail = (code, message) => Object.assign(failure, { code, message })
    let text
    try {
      text = stringify({ server, tool, args }, sendable)
    } catch (error) {
      const why = error instanceof RangeError ? 'they are nested too deeply' : error?.message
      throw fail('INVALID_ARGUMENTS', 'The arguments cannot be sent as JSON: ' + why + '.')
    }
    return ask('call', text).then(JSON.parse, ({ code, message }) => {
      throw fail(code, message)
    })
  }
  const reserved = new Set(${JSON.stringify([...reservedProperties])})
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

/** Defines the globals of a Python program. `host` blocks there, so `call_tools` sends several calls in one request. */
export const pythonPrelude = `
def _prelude(host):
    import json

    class ToolError(Exception):
        def __init__(self, code, message, server, tool):
            super().__init__(message)
            self.code, self.message, self.server, self.tool = code, message, server, tool

    def asked(name, rest, named):
        rest = list(rest)
        tool = rest.pop(0) if rest and isinstance(rest[0], str) else None
        args = dict(rest.pop(0) or {}) if rest else {}
        if rest:
            raise TypeError('call_tool(server, tool, {arguments}) or call_tool("server.tool", {arguments})')
        server = None if tool is None else name
        return {'server': server, 'tool': name if tool is None else tool, 'args': {**args, **named}}

    def failure(question, code, message):
        return ToolError(code, message, question['server'], question['tool'])

    def call_tool(name, /, *rest, **named):
        """call_tool(server, tool, {...}), call_tool("server.tool", {...}); arguments also by keyword."""
        question = asked(name, rest, named)
        try:
            answer = host('call', json.dumps(question))
        except Exception as refusal:
            error = failure(question, getattr(refusal, 'code', None), getattr(refusal, 'message', str(refusal)))
            raise error from None
        return json.loads(answer)

    def call_tools(calls, return_exceptions=False):
        """Several calls at once, each (server, tool, {...}) or ("server.tool", {...}); results in the same order."""
        questions = [asked(call[0], call[1:], {}) for call in calls]
        results = []
        for question, answer in zip(questions, json.loads(host('calls', json.dumps(questions)))):
            if 'error' not in answer:
                results.append(answer.get('value'))
                continue
            error = failure(question, answer['error']['code'], answer['error']['message'])
            if not return_exceptions:
                raise error
            results.append(error)
        return results

    def search(query, **options):
        return call_tool('toolway', 'search_tools', {'query': query, **options})['matches']

    def describe(*names):
        answer = call_tool('toolway', 'describe_tools', {'names': list(names)})
        return '\\n'.join([answer['declarations'], *('# ' + one['message'] for one in answer.get('unknown', []))])

    return ToolError, call_tool, call_tools, search, describe


ToolError, call_tool, call_tools, search, describe = _prelude(host)
del _prelude
`
