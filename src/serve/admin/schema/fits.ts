import * as z from 'zod'

/** Schemas that the document names; each under the name of its type in the contract. */
export const named = z.registry<{ id: string; description?: string }>()

type Frozen<T> = T extends readonly (infer Item)[]
  ? readonly Frozen<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: Frozen<T[Key]> }
    : T

type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? unknown : never) : never

/**
 * A schema for a type of the contract, under that name in the document. The types stay the contract; this does not
 * compile where the schema says anything else.
 */
export const fits =
  <T>(id: string, description: string) =>
  <Schema extends z.ZodType>(schema: Schema & Same<Frozen<z.output<Schema>>, Frozen<T>>): Schema => {
    named.add(schema, { id, description })
    return schema
  }
