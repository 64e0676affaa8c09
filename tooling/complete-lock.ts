import { readFileSync, writeFileSync } from 'node:fs'

/**
 * `npm install` leaves packages of other platforms out of the lock where the registry at hand does not hold them, and
 * `npm ci` then refuses the lock as incomplete, on every platform. This adds them back: name and version are known
 * from whoever depends on them, the platform from the name. Run it after each change of a dependency.
 */
interface Entry {
  readonly version?: string
  readonly dev?: boolean
  readonly optional?: boolean
  readonly optionalDependencies?: Record<string, string>
  readonly [field: string]: unknown
}

const file = new URL('../package-lock.json', import.meta.url)
const lock = JSON.parse(readFileSync(file, 'utf8')) as { packages: Record<string, Entry> }
const { packages } = lock
let added = 0

for (const [path, { optionalDependencies = {}, dev }] of Object.entries(packages)) {
  for (const [name, version] of Object.entries(optionalDependencies)) {
    if (isKnown(path, name)) continue
    packages[`node_modules/${name}`] = {
      version,
      cpu: cpuOf(name),
      ...(dev && { dev }),
      optional: true,
      ...platformOf(name),
    }
    added++
  }
}
// These packages do not say that their program needs glibc. npm believes what the lock says.
for (const [path, entry] of Object.entries(packages)) {
  if (path.startsWith('node_modules/node-linux-')) packages[path] = { ...entry, libc: ['glibc'] }
}
lock.packages = Object.fromEntries(Object.entries(packages).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`)
console.info(`${added} packages of other platforms added to the lock`)

/** In the folder of the dependent or of any package above it, as Node would look for it. */
function isKnown(path: string, name: string): boolean {
  const above = path.split('/node_modules/')
  return (
    above.some(
      (_, depth) => `${above.slice(0, above.length - depth).join('/node_modules/')}/node_modules/${name}` in packages,
    ) || `node_modules/${name}` in packages
  )
}

function cpuOf(name: string): string[] {
  const known = ['arm64', 'x64', 'ia32', 'ppc64', 's390x', 'riscv64', 'wasm32', 'loong64', 'arm']
  return [known.find((cpu) => name.includes(cpu)) ?? 'unknown']
}

function platformOf(name: string): { os?: string[]; libc?: string[] } {
  const known = [
    'android',
    'darwin',
    'freebsd',
    'openbsd',
    'netbsd',
    'openharmony',
    'win32',
    'win',
    'linux',
    'sunos',
    'aix',
  ]
  const os = known.find((word) => name.includes(word))
  if (os === undefined) return {}
  const libc = name.includes('musl') ? ['musl'] : name.includes('gnu') ? ['glibc'] : undefined
  return { os: [os === 'win' ? 'win32' : os], ...(libc && os === 'linux' && { libc }) }
}
