import { mkdir, realpath, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Folder, temporaryFolder } from '../../../tests/fixtures/folders.ts'

export interface Sandbox extends AsyncDisposable {
  readonly base: string
  readonly root: string
  /** A further allowed folder, whose own path leads through a link. */
  readonly second: string
  /** Fills `{root}`, `{base}` and `{second}` in. */
  fill(path: string): string
}

/** The folders that tests/abuse/paths.ts describes. */
export async function sandbox(): Promise<Sandbox> {
  const folder: Folder = await temporaryFolder()
  const base = await realpath(folder.path)
  const root = join(base, 'sandbox')
  const second = join(base, 'second')
  for (const name of ['sandbox/docs', 'sandbox-secret', 'outside', 'second-real']) {
    await mkdir(join(base, name), { recursive: true })
  }
  await writeFile(join(base, 'outside/secret.txt'), 'secret')
  await writeFile(join(base, 'sandbox-secret/key.pem'), 'secret')
  await writeFile(join(root, 'notes.txt'), 'notes')
  await writeFile(join(root, 'docs/guide.md'), 'guide')
  const links: Record<string, string> = {
    [join(root, 'out')]: join(base, 'outside'),
    [join(root, 'out-relative')]: '../outside',
    [join(root, 'secret-link')]: join(base, 'outside/secret.txt'),
    [join(root, 'dangling')]: join(base, 'outside/missing.txt'),
    [join(root, 'loop')]: join(root, 'loop'),
    [join(root, 'docs/up')]: '../..',
    [join(root, 'inner')]: 'docs',
    [second]: join(base, 'second-real'),
  }
  for (const [path, target] of Object.entries(links)) await symlink(target, path)
  return {
    base,
    root,
    second,
    fill: (path) => path.replaceAll('{root}', root).replaceAll('{base}', base).replaceAll('{second}', second),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  }
}
