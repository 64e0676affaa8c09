import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants } from 'node:fs'
import { access, mkdir } from 'node:fs/promises'
import { delimiter, join, resolve } from 'node:path'
import { stopping } from '../targets/child.ts'

const timeoutMs = 600_000

/** Runs a command to its end; rejects with what it said where it fails. */
async function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): Promise<void> {
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'], env, timeout: timeoutMs })
  child.on('error', () => {})
  const running = stopping(child, command)
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`${command} ${args[0]} failed: ${running.said().split('\n').at(-1)}`)
}

/** Installs each thing once, into folders below `folder`; the path of the program that it brings. */
export interface Installer {
  npm(packageName: string): Promise<string>
  pip(packageName: string, program: string): Promise<string>
  go(module: string, program: string): Promise<string>
  /** A program that was built before: in the folder `programs`, or in PATH. */
  find(program: string): Promise<string>
}

export function installer(folder: string, note: (line: string) => void, programs?: string): Installer {
  const done = new Map<string, Promise<string>>()
  const once = (name: string, install: (into: string) => Promise<string>): Promise<string> => {
    const known = done.get(name)
    if (known !== undefined) return known
    note(`installing ${name}`)
    const into = join(folder, name.replaceAll(/\W+/g, '-'))
    const installing = mkdir(into, { recursive: true }).then(() => install(into))
    installing.catch(() => {})
    done.set(name, installing)
    return installing
  }
  return {
    npm: (packageName) =>
      once(`npm ${packageName}`, async (into) => {
        const quiet = ['--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error']
        await run('npm', ['install', '--prefix', into, ...quiet, packageName])
        return join(into, 'node_modules/.bin', packageName)
      }),
    pip: (packageName, program) =>
      once(`pip ${packageName}`, async (into) => {
        await run('python3', ['-m', 'venv', into])
        await run(join(into, 'bin/pip'), ['install', '--quiet', '--disable-pip-version-check', packageName])
        return join(into, 'bin', program)
      }),
    go: (module, program) =>
      once(`go ${module}`, async (into) => {
        await run('go', ['install', `${module}@latest`], { ...process.env, GOBIN: into })
        return join(into, program)
      }),
    async find(program) {
      const folders = [
        ...(programs === undefined ? [] : [resolve(programs)]),
        ...(process.env.PATH ?? '').split(delimiter),
      ]
      for (const place of folders) {
        const path = join(place, program)
        if (
          await access(path, constants.X_OK).then(
            () => true,
            () => false,
          )
        )
          return path
      }
      throw new Error(`${program} is neither in the folder that --programs names nor in PATH`)
    },
  }
}
