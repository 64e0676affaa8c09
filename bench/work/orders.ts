/** What the parent process can ask the counter in the gateway. */
export type CounterOrder =
  | 'count functions'
  | 'functions that ran'
  | 'stop counting functions'
  | 'count bytes'
  | 'bytes'
  | 'sample bytes'
  | 'bytes by function'
  | 'count promises'
  | 'promises'

/** Functions as `file:name:offset`, and how often each ran. */
export type FunctionCounts = readonly (readonly [name: string, count: number])[]
