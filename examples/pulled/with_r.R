#!/usr/bin/env Rscript
# The usual questions with R, asked of a copy that `medfeed pull` keeps: an SQLite file (with DBI and RSQLite), or the CSV in a
# folder (with what R brings along).
#
#     Rscript with_r.R copy.sqlite
#     Rscript with_r.R folder/ 2026-03-01T00:00:00Z     # as if it were then

dates <- c("start_date", "end_date", "abstract_due_date", "late_breaking_due_date")
# The columns that the questions need, also where a dataset has no records.
columns <- list(
  conferences = c("id", "name", "updated_at", "start_date", "abstract_due_date", "abstract_due_date_status",
    "late_breaking_due_date", "late_breaking_due_date_status", "therapy_areas", "organizations"),
  journals = c("id", "name", "updated_at")
)

# Days and times as such, and flags as logical values.
typed <- function(rows) {
  for (name in intersect(dates, names(rows))) rows[[name]] <- as.Date(rows[[name]])
  for (name in grep("^formats_", names(rows), value = TRUE)) rows[[name]] <- as.logical(rows[[name]])
  rows$updated_at <- as.POSIXct(rows$updated_at, tz = "UTC", format = "%Y-%m-%dT%H:%M:%SZ")
  rows
}

# Tables of a copy, all as they stand at one moment: conferences, journals, and whom and what conferences belong to.
from_sqlite <- function(path) {
  copy <- DBI::dbConnect(RSQLite::SQLite(), normalizePath(path), flags = RSQLite::SQLITE_RO)
  on.exit(DBI::dbDisconnect(copy))
  # What is read within a transaction is one state, whatever a pull writes meanwhile.
  DBI::dbWithTransaction(copy, list(
    conferences = typed(DBI::dbReadTable(copy, "conferences")),
    journals = typed(DBI::dbReadTable(copy, "journals")),
    areas = DBI::dbReadTable(copy, "conference_therapy_areas"),
    organizations = DBI::dbGetQuery(copy, "SELECT conference_id, name AS organization FROM conference_organizations
      JOIN organizations ON organizations.id = organization_id")
  ))
}

# The same from CSV. Each file is replaced whole, so what is read of one is one state. Items of lists are separated by "; ".
from_folder <- function(path) {
  table <- function(dataset) {
    file <- file.path(path, paste0(dataset, ".csv"))
    # A dataset that the license lacks has no file, so it has no records.
    if (!file.exists(file)) {
      return(typed(read.csv(text = paste(columns[[dataset]], collapse = ","), colClasses = "character")))
    }
    rows <- read.csv(file, encoding = "UTF-8", na.strings = "")
    names(rows)[1] <- "id" # It begins with a byte-order mark.
    # What a spreadsheet might take for a formula has a `'` in front.
    texts <- vapply(rows, is.character, TRUE)
    rows[texts] <- lapply(rows[texts], sub, pattern = "^'(?='*[=+@\t\r-])", replacement = "", perl = TRUE)
    typed(rows)
  }
  conferences <- table("conferences")
  links <- function(column, name) {
    items <- strsplit(as.character(conferences[[column]]), "; ", fixed = TRUE)
    links <- data.frame(conference_id = rep(conferences$id, lengths(items)), item = as.character(unlist(items)))
    setNames(links[!is.na(links$item), ], c("conference_id", name))
  }
  list(
    conferences = conferences,
    journals = table("journals"),
    areas = links("therapy_areas", "therapy_area"),
    organizations = links("organizations", "organization")
  )
}

# Deadlines of the next 90 days by therapy area; conferences without one come first.
deadlines <- function(copy, now) {
  today <- as.Date(now, tz = "UTC")
  kind <- function(name, column) {
    rows <- copy$conferences
    data.frame(due_date = rows[[column]], kind = rep(name, nrow(rows)), status = rows[[paste0(column, "_status")]],
      id = rows$id, name = rows$name)
  }
  all <- rbind(kind("abstract", "abstract_due_date"), kind("late-breaking", "late_breaking_due_date"))
  all <- all[!is.na(all$due_date) & all$due_date >= today & all$due_date <= today + 90, ]
  all <- merge(all, copy$areas, by.x = "id", by.y = "conference_id", all.x = TRUE)
  all$therapy_area[is.na(all$therapy_area)] <- ""
  all$days_left <- as.integer(all$due_date - today)
  all <- all[order(all$therapy_area, all$due_date, all$id, all$kind, method = "radix"), ]
  all[c("therapy_area", "due_date", "days_left", "kind", "status", "id", "name")]
}

# Records whose content changed within a day. What a wider license brought in is not among them, nor what was removed.
changes <- function(copy, now) {
  of <- function(dataset) {
    rows <- copy[[dataset]]
    rows <- rows[rows$updated_at >= now - 24 * 3600, ]
    rows <- rows[order(rows$id), ]
    data.frame(dataset = rep(dataset, nrow(rows)), rows[c("id", "name", "updated_at")])
  }
  rbind(of("conferences"), of("journals"))
}

# How many conferences each organization has, how many of them are to come, and when the next one starts.
organizations <- function(copy, now) {
  links <- merge(copy$organizations, copy$conferences, by.x = "conference_id", by.y = "id")
  of <- function(rows) {
    to_come <- sort(rows$start_date[rows$start_date >= as.Date(now, tz = "UTC")])
    data.frame(organization = rows$organization[1], conferences = nrow(rows), upcoming = length(to_come),
      next_start = to_come[1])
  }
  none <- data.frame(organization = character(), conferences = integer(), upcoming = integer(),
    next_start = as.Date(character()))
  found <- do.call(rbind, c(list(none), lapply(split(links, links$organization), of)))
  found[order(found$organization, method = "radix"), ]
}

given <- commandArgs(trailingOnly = TRUE)
if (!length(given) %in% 1:2) stop("usage: Rscript with_r.R COPY [NOW]")
now <- if (length(given) == 2) as.POSIXct(given[2], tz = "UTC", format = "%Y-%m-%dT%H:%M:%SZ") else Sys.time()
copy <- if (dir.exists(given[1])) from_folder(given[1]) else from_sqlite(given[1])
for (question in c("deadlines", "changes", "organizations")) {
  cat("# ", question, "\n", sep = "")
  write.csv(get(question)(copy, now), row.names = FALSE, na = "")
  cat("\n")
}
