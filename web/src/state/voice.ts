// Text as speech, where the browser has a voice.
const speech = 'speechSynthesis' in window ? window.speechSynthesis : undefined

export const hasVoice = speech !== undefined

// Says an English text; `speaking` is told when it begins and when it ends. What is returned stops it.
export function say(text: string, rate: number, speaking: (now: boolean) => void): () => void {
  if (!speech) return () => {}
  const said = new SpeechSynthesisUtterance(text)
  said.lang = 'en'
  said.rate = rate
  said.onend = said.onerror = () => speaking(false)
  speaking(true)
  speech.speak(said)
  return () => {
    said.onend = said.onerror = null
    speaking(false)
    speech.cancel()
  }
}
