import { dirname, resolve } from 'node:path'
import { parseEnv } from 'node:util'
import { type EnvVars, escapeVariables, expand, isDisabled } from './interpolate.ts'
import { readSource } from './locate.ts'
import { inHome } from './paths.ts'
import { type ConfigProblem, problemAt } from './problems.ts'
import {
  type BranchNode,
  branch,
  find,
  type LeafNode,
  leaf,
  mapServers,
  member,
  type TreeMember,
  withMember,
  withoutMember,
} from './tree.ts'

/** Merges each server's `envFile` into its `env`, whose own keys win. A change to one of `files` requires a reload. */
export async function withEnvFiles(tree: BranchNode, env: EnvVars, home: string) {
  const problems: ConfigProblem[] = []
  const read = new Map<LeafNode, { readonly path: string; readonly variables: NodeJS.Dict<string> }>()
  for (const named of envFiles(tree)) {
    const expansion = expand(String(named.value), env)
    if (!('text' in expansion)) {
      problems.push(problemAt(named.at, expansion.fault))
      continue
    }
    const path = inHome(expansion.text, home) ?? resolve(dirname(named.at.file.path), expansion.text)
    const source = await readSource(path)
    if ('message' in source) problems.push(problemAt(named.at, `${path}: ${source.message}`))
    read.set(named, { path, variables: 'message' in source ? {} : parseEnv(source.text) })
  }
  const changed = mapServers(tree, (server) => {
    const named = envFileOf(server)
    return named ? withVariables(server, named, read.get(named)?.variables ?? {}) : server
  })
  return { tree: changed, problems, files: [...read.values()].map(({ path }) => path) }
}

function envFiles(tree: BranchNode): LeafNode[] {
  const found: LeafNode[] = []
  mapServers(tree, (server) => {
    const named = envFileOf(server)
    if (named && !isDisabled(server)) found.push(named)
    return server
  })
  return found
}

function envFileOf(server: BranchNode): LeafNode | undefined {
  const named = find(server, ['envFile'])
  return named?.kind === 'leaf' && typeof named.value === 'string' ? named : undefined
}

function withVariables(server: BranchNode, named: LeafNode, variables: NodeJS.Dict<string>): BranchNode {
  const rest = withoutMember(server, 'envFile')
  const written = find(server, ['env'])
  // Leave an `env` that is not a section unchanged: schema validation reports the error.
  if (written !== undefined && written.kind !== 'branch') return rest
  const env = new Map<string, TreeMember>()
  for (const [name, value] of Object.entries(variables)) {
    env.set(name, member({ ...leaf(named.at, escapeVariables(value ?? '')), variables: 'filled' }))
  }
  for (const [name, value] of written?.members ?? []) env.set(name, value)
  return env.size === 0 ? rest : withMember(rest, 'env', member(branch(written?.at ?? named.at, env)))
}
