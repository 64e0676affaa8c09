type Fields = Readonly<Record<string, unknown>>

/** What a value violates. */
export interface Problem {
  readonly keyword: string
  /** The JSON pointer of the value. */
  readonly path: readonly string[]
  // biome-ignore lint/suspicious/noExplicitAny: each keyword has its own.
  readonly params: any
  /** The value and the schema with the keyword. Absent if only the first problem is looked for. */
  readonly data?: unknown
  readonly schema?: Fields
}

/** The members and items of a value that a keyword evaluated, for `unevaluatedProperties` and `unevaluatedItems`. */
export type Evaluated = Set<string | number>

export type Check = (value: unknown, evaluated?: Evaluated) => boolean

export interface Keyword {
  readonly check: Check
  /** Describes a failure. Absent for keywords whose subschemas describe it. */
  readonly params?: (value: unknown) => Fields
}

/** The state of the running check. Checks are synchronous, so only one runs at a time. */
export const run = {
  problems: undefined as Problem[] | undefined,
  /** Whether to find all problems and not only the first one. */
  all: false,
  path: [] as string[],
  /** The outermost schema that has been entered with each dynamic anchor. */
  anchors: new Map<string, Fields>(),
}

/** Notes a problem, if they are collected. Returns false. */
export function failed(keyword: string, params: Fields, data: unknown, schema: Fields): false {
  run.problems?.push({ keyword, path: [...run.path], params, ...(run.all && { data, schema }) })
  return false
}

/** Checks a member or an item, whose name is part of the path in problems. */
export function checkMember(check: Check, value: unknown, name: string): boolean {
  run.path.push(name)
  const accepts = check(value)
  run.path.pop()
  return accepts
}

/** Runs a check whose problems are not problems of the value. */
export function quietly<T>(check: () => T): T {
  const { problems, all } = run
  run.problems = undefined
  run.all = false
  try {
    return check()
  } finally {
    run.problems = problems
    run.all = all
  }
}
