import { unescapeStep } from './json-pointer.ts'
import { elements, members, OPEN_ARRAY } from './json-text.ts'

const pathStep = /\.([^.[\]]+)|\[(\d+)\]|\[(?:'([^']*)'|"([^"]*)")\]/y

/** The steps of a JSON Pointer (`/a/0/b`) or of a path such as `$.a[0]['b']`; undefined for anything else. */
export function pathSteps(path: string): readonly string[] | undefined {
  if (path.startsWith('/')) return path.slice(1).split('/').map(unescapeStep)
  if (path !== '' && !path.startsWith('$')) return undefined
  const steps: string[] = []
  pathStep.lastIndex = 1
  while (pathStep.lastIndex < path.length) {
    const found = pathStep.exec(path)
    const name = found?.slice(1).find((group) => group !== undefined)
    if (name === undefined) return undefined
    steps.push(name)
  }
  return steps
}

/** The bytes of the value at a path; undefined if there is none. */
export const bytesAt = (json: Buffer, steps: readonly string[]): Buffer | undefined =>
  steps.reduce<Buffer | undefined>((place, name) => {
    if (place?.[0] === OPEN_ARRAY) return /^\d+$/.test(name) ? elements(place)?.[Number(name)] : undefined
    return place && members(place, [name])?.get(name)
  }, json)
