import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { stopping } from './child.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Builds the program as it is published, into a folder outside of the repository; where to start it. */
export async function buildProgram(folder: string): Promise<URL> {
  const args = [join(root, 'tooling/build.ts'), join(folder, 'dist')]
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] })
  await using compiling = stopping(child, 'build')
  let said = ''
  child.stdout.on('data', (chunk) => {
    said += chunk
  })
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`the build failed: ${said.slice(0, 300)}${compiling.said()}`)
  await copyFile(join(root, 'package.json'), join(folder, 'package.json'))
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  return pathToFileURL(join(folder, 'dist/cli/main.js'))
}
