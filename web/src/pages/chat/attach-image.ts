import type { AttachedImage } from './turn.ts'

export const imageTypes = ['image/png', 'image/jpeg', 'image/webp', 'image/gif']

/** How many images one message may have. */
export const maxImages = 4

/** Larger images are scaled down: models do so anyway, and each request repeats the images of the conversation. */
const maxBytes = 512 * 1024
const maxSide = 1_280
/** Larger files are refused, because decoding them takes long. */
const maxFile = 32 * 1024 * 1024

/** Reads an image file as a data URL of bounded size. Rejects with a message for the user. */
export async function attachImage(file: File): Promise<AttachedImage> {
  const { name, type, size } = file
  if (!imageTypes.includes(type)) throw new Error(`${name} is not a PNG, JPEG, WebP or GIF image.`)
  if (size > maxFile) throw new Error(`${name} is larger than 32 MiB.`)
  const blob = size <= maxBytes ? file : await scaledDown(file)
  if (blob.size > maxBytes) throw new Error(`${name} is too large, even after scaling it down.`)
  return { name, url: await dataUrl(blob) }
}

async function scaledDown(file: File): Promise<Blob> {
  const bitmap = await createImageBitmap(file).catch(() => {
    throw new Error(`${file.name} cannot be read as an image.`)
  })
  const scale = Math.min(1, maxSide / Math.max(bitmap.width, bitmap.height))
  const canvas = new OffscreenCanvas(Math.ceil(bitmap.width * scale), Math.ceil(bitmap.height * scale))
  canvas.getContext('2d')?.drawImage(bitmap, 0, 0, canvas.width, canvas.height)
  bitmap.close()
  return canvas.convertToBlob({ type: 'image/jpeg', quality: 0.85 })
}

const dataUrl = (blob: Blob): Promise<string> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(String(reader.result))
    reader.onerror = () => reject(new Error('The image cannot be read.'))
    reader.readAsDataURL(blob)
  })
