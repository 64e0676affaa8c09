/** How large a strict schema may be. */
export interface StrictLimits {
  readonly properties: number
  readonly levels: number
  readonly enumValues: number
  /** Of all names and values together. */
  readonly characters: number
}

/** As OpenAI documents them. */
export const openaiLimits: StrictLimits = { properties: 5_000, levels: 10, enumValues: 1_000, characters: 120_000 }

const maxSchemas = 20_000
const maxPlace = 4_096

/** Counts what a strict schema uses up; each call throws what `refuse` throws once it is too much. */
export function createMeter(limits: StrictLimits, refuse: (why: string) => never) {
  let [schemas, properties, values, characters] = [0, 0, 0, 0]
  const count = (text: string): void => {
    characters += text.length
    if (characters > limits.characters) refuse('has names and values that are too long')
  }
  return {
    schema(at: string, depth: number): void {
      // Choices inside choices are no levels, but have an end as well.
      if (depth > limits.levels || at.length > maxPlace) refuse('nests too deeply')
      if (++schemas > maxSchemas) refuse('is too large')
    },
    property(name: string): void {
      if (++properties > limits.properties) refuse('has too many properties')
      count(name)
    },
    values(list: readonly unknown[]): void {
      values += list.length
      if (values > limits.enumValues) refuse('lists too many values')
      for (const value of list) count(JSON.stringify(value))
    },
  }
}
