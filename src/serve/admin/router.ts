import { Refusal, rpc, wrongMethod } from '../refusal.ts'
import type { Route } from './route.ts'

export interface Matched {
  readonly route: Route
  /** What stands in the place of the name in braces. */
  readonly target: string
}

export type Router = (method: string, path: string) => Matched

/** Finds the route of a path below `/admin/api/`. Words win over names, so that `agents/matrix` is no agent. */
export function createRouter(routes: readonly Route[]): Router {
  const patterns = [...Map.groupBy(routes, ({ path }) => path)]
    .map(([path, sharing]) => ({ parts: path.split('/'), sharing }))
    .sort((a, b) => namesIn(a.parts) - namesIn(b.parts))

  return (method, path) => {
    const given = path.split('/').map(decoded)
    for (const { parts, sharing } of patterns) {
      const target = targetOf(parts, given)
      if (target === undefined) continue
      const route = sharing.find((one) => one.method === method || (method === 'HEAD' && isReadable(one)))
      if (route) return { route, target }
      throw wrongMethod(method, sharing.map((one) => one.method).join(', '))
    }
    throw nothing()
  }
}

/** A stream without its events would never end. */
const isReadable = ({ method, stream }: Route) => method === 'GET' && !stream

const isName = (part: string) => part.startsWith('{')
const namesIn = (parts: readonly string[]) => parts.filter(isName).length

/** The name in a path that fits, or nothing at all where it has none; undefined where it does not fit. */
function targetOf(parts: readonly string[], given: readonly string[]): string | undefined {
  if (parts.length !== given.length) return undefined
  let target = ''
  for (const [index, part] of parts.entries()) {
    const found = given[index] as string
    if (isName(part) && found !== '') target = found
    else if (part !== found) return undefined
  }
  return target
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    throw nothing()
  }
}

const nothing = () =>
  new Refusal(404, rpc.request, 'There is nothing here: GET /admin/api/openapi.json says what there is.')
