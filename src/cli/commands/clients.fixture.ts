import { mkdir } from 'node:fs/promises'
import { place } from '../../clients/place.fixture.ts'
import { toolway } from '../kit.fixture.ts'

/** A user with a home, a project to stand in, and these files; `home/…` and `shop/…` are where they say. */
export async function user(files: Readonly<Record<string, string>> = {}, variables: Record<string, string> = {}) {
  const { at } = await place(files)
  await mkdir(at('home'), { recursive: true })
  await mkdir(at('shop'), { recursive: true })
  const surroundings = { cwd: at('shop'), env: { HOME: at('home'), PATH: process.env.PATH, ...variables } }
  return { at, surroundings, run: (...words: string[]) => toolway(words, surroundings) }
}
