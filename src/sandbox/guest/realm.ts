/** Host functions that the realm can call with strings and numbers; results arrive through `answered`. */
export interface Natives {
  print(text: string): void
  /** Makes a host call. Returns an error message if a limit is exceeded. */
  call(id: number, name: string, input: string): string | undefined
  timer(id: number, ms: number): string | undefined
  finished(ok: boolean, text?: string): void
}

export interface RealmTools {
  /** Reports the program's value or, with `returned`, the value of the function that wraps the program. */
  finish(promise: Promise<unknown>, returned: boolean): Promise<void>
  answered(id: number, ok: boolean, text: string, code: string): void
  /** Notes a promise that was rejected without a handler, or forgets it once it has one. */
  rejected(promise: Promise<unknown>, reason: unknown, handled: boolean): void
  /** Returns the errors that nothing has handled and the number of pending timers as JSON, and forgets both. */
  unfinished(): string
}

/**
 * The functions below as an expression for the engine, whose value is `realm`. They are evaluated as text, so they must
 * not refer to anything else. Programs that change the globals that they use harm only themselves.
 */
export const realmSource = (): string =>
  `(() => {\n${[jsonValueOf, displayText, describeThrown, createHostRequests, realm].join('\n')}\nreturn ${realm.name}\n})()`

/** Installs the globals for a program. */
function realm({ print, call, timer, finished }: Natives): RealmTools {
  const { parse, stringify } = JSON
  const { ask, answered, HostRefusal } = createHostRequests()
  const timers = new Set<number>()
  const rejections = new Map<Promise<unknown>, unknown>()
  const log = (...values: unknown[]) => print(`${values.map(displayText).join(' ')}\n`)

  const host = (name: string, input: string): Promise<string> => {
    if (typeof name !== 'string' || typeof input !== 'string')
      throw new TypeError('host(name, input) takes two strings')
    return ask((id) => call(id, name, input))
  }

  Object.assign(globalThis, {
    host,
    HostRefusal,
    console: { log, info: log, debug: log, warn: log, error: log, trace: log, dir: log, table: log },
    setTimeout(callback: (...values: unknown[]) => void, ms = 0, ...values: unknown[]): number {
      let timerId = 0
      const wait = ask((id) => {
        timerId = id
        timers.add(id)
        return timer(id, Number(ms) || 0)
      })
      void wait.then(() => timers.delete(timerId) && callback(...values))
      return timerId
    },
    clearTimeout: (id: number) => void timers.delete(id),
    readText: async (path: string): Promise<string> => parse(await host('sandbox.readText', stringify({ path }))),
    async fetch(url: unknown, options: { method?: string; headers?: object; body?: string } = {}) {
      const { method, headers, body } = options
      const answer = await host('sandbox.fetch', stringify({ url: `${url}`, method, headers, body }))
      const response = parse(answer) as { status: number; headers: Record<string, string>; body: string }
      const ok = response.status >= 200 && response.status < 300
      return { ...response, ok, text: async () => response.body, json: async () => parse(response.body) }
    },
  })

  return {
    async finish(promise, returned) {
      try {
        const result = await promise
        const value = await (returned ? result : (result as { readonly value: unknown }).value)
        finished(true, stringify(value, jsonValueOf))
      } catch (thrown) {
        finished(false, describeThrown(thrown))
      }
    },
    answered,
    rejected(promise, reason, handled) {
      if (handled) rejections.delete(promise)
      else rejections.set(promise, reason)
    },
    unfinished() {
      const errors = [...rejections.values()].slice(0, 10).map(describeThrown)
      const count = timers.size
      rejections.clear()
      timers.clear()
      return stringify({ errors, timers: count })
    },
  }
}

/** Requests to the host that wait for an answer. */
function createHostRequests() {
  const PromiseHere = Promise
  interface Pending {
    resolve(text: string): void
    reject(error: Error): void
    readonly callSite: Error
  }
  const pending: Record<number, Pending> = Object.create(null)
  let lastId = 0

  class HostRefusal extends Error {
    readonly code: string
    constructor(message: string, code: string) {
      super(message)
      this.name = 'HostRefusal'
      this.code = code
    }
  }

  const answered: RealmTools['answered'] = (id, ok, text, code) => {
    const waiting = pending[id] as Pending
    delete pending[id]
    if (ok) return waiting.resolve(text)
    const refusal = new HostRefusal(text, code)
    const { stack } = waiting.callSite
    if (typeof stack === 'string') refusal.stack = stack
    waiting.reject(refusal)
  }

  const ask = (send: (id: number) => string | undefined): Promise<string> =>
    new PromiseHere((resolve, reject) => {
      const id = ++lastId
      // Capture the call site, because an error from the host has no stack of its own.
      pending[id] = { resolve, reject, callSite: new Error() }
      const refused = send(id)
      if (refused !== undefined) answered(id, false, refused, 'OVERLOADED')
    })

  return { ask, answered, HostRefusal }
}

/** Replaces values that JSON cannot express. */
function jsonValueOf(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return `${value}`
  if (value instanceof Map) return Object.fromEntries(value)
  if (value instanceof Set) return [...value]
  if (value instanceof Error) return { ...value, name: value.name, message: value.message }
  return value
}

function displayText(value: unknown): string {
  if (typeof value === 'string') return value
  if (value instanceof Error) return `${value.name}: ${value.message}`
  try {
    return JSON.stringify(value, jsonValueOf) ?? String(value)
  } catch {
    return String(value)
  }
}

function describeThrown(thrown: unknown): string {
  const text = (read: () => unknown): string | undefined => {
    try {
      const value = read()
      return typeof value === 'string' ? value : undefined
    } catch {
      return undefined
    }
  }
  const error = thrown as Record<string, unknown>
  const whole = () => displayText(thrown)
  return JSON.stringify({
    __proto__: null,
    name: text(() => error.name) ?? 'Error',
    message: text(() => error.message) ?? text(whole) ?? 'The program threw a value that cannot be displayed.',
    stack: text(() => error.stack),
    code: text(() => error.code),
  })
}
