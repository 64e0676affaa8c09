import { registerHooks } from 'node:module'
import fc from 'fast-check'
import { builtinEnvironments, type Environment } from 'vitest/runtime'
import { seed } from './fixtures/runs.ts'

/**
 * The environment of test workers: that of Node, and imports are resolved here. Vitest would send a message for each of
 * them, tens of thousands in all, to a module graph that only its watch mode uses.
 */
const environment: Environment = {
  ...builtinEnvironments.node,
  setup(global, options) {
    registerHooks({ resolve })
    fc.configureGlobal({ seed: seed() })
    return builtinEnvironments.node.setup(global, options)
  },
}

export default environment

type Resolve = NonNullable<Parameters<typeof registerHooks>[0]['resolve']>

const root = new URL('..', import.meta.url).href
const packages = new Map<string, ReturnType<Resolve>>()

const resolve: Resolve = (specifier, context, next) => {
  const { parentURL = '', conditions } = context
  if (specifier.startsWith('node:')) return { url: specifier, format: 'builtin', shortCircuit: true }
  if (!parentURL.startsWith(root) || parentURL.startsWith('node_modules/', root.length)) return next(specifier, context)
  if (specifier.startsWith('.'))
    return specifier.endsWith('.ts')
      ? { url: new URL(specifier, parentURL).href, format: 'module-typescript', shortCircuit: true }
      : next(specifier, context)
  if (!conditions.includes('import') || !/^[@\w]/.test(specifier)) return next(specifier, context)
  // All our files find the same packages.
  const known = packages.get(specifier)
  if (known) return known
  const found = { ...next(specifier, context), shortCircuit: true }
  packages.set(specifier, found)
  return found
}
