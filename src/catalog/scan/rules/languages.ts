import type { FindingKind } from '../finding.ts'
import { type Rule, rulesOf } from './rule.ts'

/** Patterns for the most common attacks in other languages: ignore earlier instructions, hide things from the user. */
const patterns: Readonly<Record<string, Readonly<Partial<Record<FindingKind, RegExp>>>>> = {
  german: {
    instruction:
      /\b(?:ignoriere|ignorieren sie|missachte|vergiss|übergehe|verwirf)\b.{0,30}(?:alle |bisherig|vorherig|früher|vorig|obig|deine|sämtliche).{0,20}(?:anweisung|regel|vorgabe|instruktion|befehl|richtlinie)/u,
    secrecy:
      /\b(?:sage|sag|erwähne|verrate|informiere|teile|erzähle|melde|zeige)\b.{0,40}\b(?:nutzer|benutzer|anwender|user|niemand|kunden)\w*.{0,30}\b(?:nicht|nichts|mit)\b|\bohne (?:den |dem |die )?(?:nutzer|benutzer|anwender)\w* (?:zu informieren|davon|etwas zu)|\bheimlich\b.{0,40}\b(?:sende|schicke|lies|kopiere|rufe|lade)/u,
  },
  french: {
    instruction:
      /\b(?:ignore[rz]?|oublie[rz]?|ne tiens pas compte|ne tenez pas compte)\b.{0,30}\b(?:instructions?|consignes?|règles?|directives?)\b.{0,20}(?:précédent|antérieur|ci-dessus|système|initial|$)/u,
    secrecy:
      /\b(?:ne |n')(?:le |lui |en |l')?(?:dis|dites|informe[rz]?|mentionne[rz]?|parle[rz]?|révèle[rz]?|préviens|signale[rz]?|montre[rz]?)\b.{0,10}\b(?:pas|rien|jamais)\b.{0,30}\butilisateur|\bà l'insu de l'utilisateur|\bsans (?:informer|prévenir|le dire à) l'utilisateur/u,
  },
  spanishAndPortuguese: {
    instruction:
      /\b(?:ignor[ae]|olvid[ae]|descart[ae]|desconsider[ae]|esque[cç]a)\b.{0,30}\b(?:instruc(?:ciones|ções)|reglas|regras|indicaciones|órdenes|ordens|diretrizes)\b.{0,20}(?:anterior|previas|prévias|sistema|$)/u,
    secrecy:
      /\b(?:no|não|nao|sin|sem|nunca)\b.{0,16}\b(?:digas?|informes?|informar|menciones?|mencione|avises?|avisar|reveles?|revele|conte|cuentes|diga|muestres|mostre)\b.{0,20}\b(?:usuario|usuário)\b/u,
  },
  italian: {
    instruction:
      /\b(?:ignora|dimentica|trascura)\b.{0,30}\b(?:istruzioni|regole|direttive)\b.{0,20}(?:precedenti|sistema|$)/u,
    secrecy: /\b(?:non|senza|mai)\b.{0,16}\b(?:dire|informare|menzionare|avvisare|rivelare|dirlo)\b.{0,20}\butente/u,
  },
  dutch: {
    instruction: /\b(?:negeer|vergeet)\b.{0,30}\b(?:instructies|regels|opdrachten)\b/u,
    secrecy:
      /\b(?:vertel|zeg|meld|informeer|vermeld)\b.{0,30}\bgebruiker\b.{0,20}\b(?:niet|niets)\b|\bzonder de gebruiker te (?:informeren|vertellen)/u,
  },
  russian: {
    instruction:
      /(?:игнорируй|игнорируйте|забудь|забудьте|отбрось|не обращай внимания на).{0,30}(?:инструкци|указани|правил|команд)/u,
    secrecy:
      /(?:не|никогда не|без)\s(?:сообщай|сообщайте|говори|говорите|рассказывай|упоминай|показывай|информируй|уведомляй|уведомления|ведома).{0,20}пользовател/u,
  },
  polish: {
    instruction: /(?:zignoruj|ignoruj|zapomnij o).{0,30}(?:instrukcj|polece|zasad)/u,
    secrecy: /\bnie (?:mów|informuj|wspominaj|ujawniaj).{0,20}użytkownik/u,
  },
  chinese: {
    instruction:
      /(?:忽略|无视|忘记|忽視|無視)(?:之前|以上|前面|先前|此前|所有|全部|任何|系统|你).{0,10}(?:指令|指示|说明|规则|提示|命令|要求|規則)/u,
    secrecy:
      /(?:不要|请勿|勿|切勿|不得|无需|别|不可|不能|請勿)(?:(?:告诉|告知|通知|提及|透露给|让|告訴).{0,8}(?:用户|使用者|他人|任何人|用戶)|向(?:用户|使用者).{0,4}(?:透露|提及|说明|披露|告知))/u,
    exfiltration:
      /(?:读取|获取|收集|复制|发送|上传|将).{0,12}(?:私钥|密钥|密码|凭证|凭据|系统提示词|系统提示|对话记录|聊天记录|环境变量).{0,12}(?:发送|上传|传递|传给|填入|放入|提交)/u,
  },
  japaneseAndKorean: {
    instruction:
      /(?:以前|これまで|上記|前|すべて|全て)の(?:指示|命令|ルール|規則|プロンプト).{0,6}(?:無視|忘れ)|(?:이전|위의|모든).{0,6}(?:지시|명령|규칙|지침).{0,6}(?:무시|잊)/u,
    secrecy:
      /ユーザーに.{0,10}(?:知らせない|伝えない|言わない|教えない|知らせず|伝えず)|(?:사용자에게|유저에게).{0,10}(?:알리지|말하지|언급하지)/u,
  },
}

export const languageRules: readonly Rule[] = Object.values(patterns).flatMap((byKind) =>
  Object.entries(byKind).flatMap(([kind, pattern]) => rulesOf(kind as FindingKind, [{ pattern }])),
)
