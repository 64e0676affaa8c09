import * as z from 'zod'
import { type Config, configSchema } from './schema.ts'
import type { Path } from './tree.ts'

/**
 * The kind of secret that a setting contains. The schema marks secret settings with `.meta({ secret: … })`. This is the
 * only list of secret settings: redaction, the admin API, imports and error messages all use these marks.
 *
 * - `true`: a credential.
 * - `digest`: the hash of a credential. It does not reveal the credential, but it is not shown either.
 * - `address`: a URL that may contain a credential in any part.
 * - `publicAddress`: a URL with a public path; its user name, password and query are not shown.
 * - `variables`, `headers`: named values; a value's name or format tells whether it is secret.
 * - `words`: a command or its arguments, which may contain credentials.
 * - `payload`: JSON that is redacted like the arguments of a call.
 * - `section`: a section with credentials; changes in it are reported without values.
 */
export type SecretKind =
  | true
  | 'digest'
  | 'address'
  | 'publicAddress'
  | 'variables'
  | 'headers'
  | 'words'
  | 'payload'
  | 'section'

export interface SecretSetting {
  readonly path: Path
  readonly kind: SecretKind
  readonly value: unknown
}

type Schema = z.core.$ZodType

/** The parts of zod's internal definitions that the lookup traverses. */
interface SchemaDefinition {
  readonly innerType?: Schema
  readonly in?: Schema
  readonly options?: readonly Schema[]
  readonly shape?: Readonly<Record<string, Schema>>
  /** The schema of members that are not in the shape. */
  readonly catchall?: Schema
  readonly valueType?: Schema
  readonly element?: Schema
}

/** Returns all secret settings in a configuration, in the order of its keys. */
export function* secretSettings(config: Config): Generator<SecretSetting> {
  yield* settingsIn(config, [configSchema], [])
}

function* settingsIn(value: unknown, schemas: readonly Schema[], path: Path): Generator<SecretSetting> {
  if (value === undefined || value === null || schemas.length === 0) return
  const kind = kindOf(schemas)
  const isContainer = kind === undefined || kind === 'section' || (kind === 'digest' && typeof value === 'object')
  if (!isContainer) yield { path, kind, value }
  else if (typeof value === 'object') {
    for (const [key, part] of Object.entries(value)) yield* settingsIn(part, childrenOf(schemas, key), [...path, key])
  }
}

/** The kind of secret at a path; undefined if there is none. Any string in the path can stand for a server name. */
export const secretKindAt = (path: Path): SecretKind | undefined =>
  kindOf(path.reduce<readonly Schema[]>(childrenOf, [configSchema]))

/** The keys that a schema declares at a path. Empty if any key is allowed there. */
export function knownKeysAt(schema: Schema, path: Path): string[] {
  const definitions = path.reduce<readonly Schema[]>(childrenOf, [schema]).flatMap(unwrap)
  return [...new Set(definitions.flatMap(({ shape }) => Object.keys(shape ?? {})))]
}

function kindOf(schemas: readonly Schema[]): SecretKind | undefined {
  for (const schema of schemas) {
    const { secret } = (z.globalRegistry.get(schema) ?? {}) as { readonly secret?: SecretKind }
    const { innerType, in: input, options = [] } = definitionOf(schema)
    const inner = innerType ?? input
    const kind = secret ?? kindOf(inner ? [inner] : options)
    if (kind !== undefined) return kind
  }
  return undefined
}

const childrenOf = (schemas: readonly Schema[], key: string | number): readonly Schema[] =>
  schemas.flatMap(unwrap).flatMap(({ shape, catchall, valueType, element }) => {
    const child = shape ? (Object.hasOwn(shape, key) ? shape[key] : catchall) : (valueType ?? element)
    return child ? [child] : []
  })

/** Removes wrappers (defaults, optionals and transforms). A union yields all its options. */
function unwrap(schema: Schema): SchemaDefinition[] {
  const definition = definitionOf(schema)
  const inner = definition.innerType ?? definition.in
  if (inner) return unwrap(inner)
  return definition.options ? definition.options.flatMap(unwrap) : [definition]
}

const definitionOf = (schema: Schema): SchemaDefinition => schema._zod.def as unknown as SchemaDefinition
